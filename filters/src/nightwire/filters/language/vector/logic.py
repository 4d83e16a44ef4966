"""Choices, truth and its logic, Python's and SQL's, over columns."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from nightwire.filters.language.vector.values import (
    NONE,
    Array,
    FaultTable,
    TypedValues,
    Value,
    ValueBuilder,
    choose,
    python,
    truth,
)


def of_sql(value: Value, size: int) -> Value:
    """Return *value* as SQL has it: NaN is nothing."""
    if not any(lane.kind in ("float", "npfloat") for lane in value.lanes):
        return value
    rows = ValueBuilder(size)
    for lane in value.lanes:
        if lane.kind not in ("float", "npfloat"):
            rows.lane(lane.kind, lane.values, np.ones(size, bool) if lane.where is None else lane.where)
            continue
        nan = np.isnan(lane.values)
        if lane.where is None and not nan.any():
            return value
        nan = np.broadcast_to(nan, size)
        where = np.ones(size, bool) if lane.where is None else lane.where
        rows.lane("float", lane.values, where & ~nan)
        rows.none(where & nan)
    return rows.value(value.fault)


def _seq(operands: Sequence[Value], size: int) -> Value:
    first, second = operands
    if first.fault is None:
        return second
    return choose(first.fault == 0, first.fault, second, NONE)


def _if(operands: Sequence[Value], size: int) -> Value:
    taken, fault = truth(operands[0], size)
    return choose(taken, fault, operands[1], operands[2])


def _and(operands: Sequence[Value], size: int) -> Value:
    taken, fault = truth(operands[0], size)
    return choose(taken, fault, operands[1], operands[0])


def _or(operands: Sequence[Value], size: int) -> Value:
    taken, fault = truth(operands[0], size)
    return choose(taken, fault, operands[0], operands[1])


def _not(operands: Sequence[Value], size: int) -> Value:
    true, fault = truth(operands[0], size)
    where = None if fault is None else fault == 0
    return Value((TypedValues("bool", ~true, where),), fault)


def _is_none(operands: Sequence[Value], size: int) -> Value:
    (value,) = operands
    none = np.zeros(size, bool)
    for lane in value.lanes:
        if lane.kind == "none":
            none |= True if lane.where is None else lane.where
    where = None if value.fault is None else value.fault == 0
    return Value((TypedValues("bool", none, where),), value.fault)


def _logic(absorbing: bool) -> Callable[[Sequence[Value], int], Value]:
    """Return SQL's OR (*absorbing* True) or AND (False): unknown unless one side decides."""

    def apply(operands: Sequence[Value], size: int) -> Value:
        rows = ValueBuilder(size)
        sides = [_sides(of_sql(one, size), size) for one in operands]
        decided = [(true if absorbing else false) for true, false, _ in sides]
        fault = sides[0][2]
        second = sides[1][2]
        if second is not None:
            second = np.where(decided[0], 0, second).astype(np.int32)
            fault = second if fault is None else np.where(fault, fault, second)
        sound = np.ones(size, bool) if fault is None else fault == 0
        known = (
            decided[0] | decided[1] | ((sides[0][0] | sides[0][1]) & (sides[1][0] | sides[1][1]))
        ) & sound
        answer = (decided[0] | decided[1]) if absorbing else ~(decided[0] | decided[1])
        rows.lane("bool", answer, known)
        rows.none(~known & sound)
        return rows.value(fault)

    return apply


def _sides(value: Value, size: int) -> tuple[Array, Array, Array | None]:
    """Return where *value* is true, where false, and its faults; elsewhere it is unknown."""
    true, fault = truth(value, size)
    none = _is_none([value], size).lanes[0].values
    false = ~true & ~none if fault is None else ~true & ~none & (fault == 0)
    return true, false, fault


def _sql_not(operands: Sequence[Value], size: int) -> Value:
    true, false, fault = _sides(of_sql(operands[0], size), size)
    rows = ValueBuilder(size)
    rows.lane("bool", false, true | false)
    rows.none(~(true | false) if fault is None else ~(true | false) & (fault == 0))
    return rows.value(fault)


def _sql_null(operands: Sequence[Value], size: int) -> Value:
    return _is_none([of_sql(operands[0], size)], size)


def _coalesce(operands: Sequence[Value], size: int) -> Value:
    first = of_sql(operands[0], size)
    null, fault = truth(_is_none([first], size), size)
    return choose(null, fault, operands[1], first)


CONTROL: Mapping[str, Callable[[Sequence[Value], int], Value]] = {
    "seq": _seq,
    "if": _if,
    "and": _and,
    "or": _or,
    "not": _not,
    "is_none": _is_none,
    "sql.and": _logic(absorbing=False),
    "sql.or": _logic(absorbing=True),
    "sql.not": _sql_not,
    "sql.null": _sql_null,
    "sql.coalesce": _coalesce,
}


@lru_cache(maxsize=1_000)
def matcher(like: str) -> Callable[[str], bool]:
    """Return what tells whether a text is *like* a pattern, in time that grows with their lengths alone.

    What stands between two ``%`` has a fixed length, and where it is found first is as good as any place: so
    nothing is ever tried again, as one regular expression for all would.
    """
    parts = like.split("%")
    first, *others = [re.compile(_fixed(part), re.IGNORECASE | re.DOTALL) for part in parts]

    def matches(text: str) -> bool:
        if not others:
            return first.fullmatch(text) is not None
        found = first.match(text)
        for one in others[:-1]:
            found = one.search(text, found.end()) if found else None
        begin = len(text) - len(parts[-1])
        return found is not None and begin >= found.end() and others[-1].match(text, begin) is not None

    return matches


def like(value: Value, text: str, size: int, faults: FaultTable) -> Value:
    """Return which texts are like the pattern *text*."""
    rows = ValueBuilder(size)
    matches = matcher(text)
    for lane in value.lanes:
        where = np.ones(size, bool) if lane.where is None else lane.where
        if lane.kind == "none":
            rows.none(where)
        elif lane.kind == "str":
            chosen = np.flatnonzero(where)
            rows.scatter(chosen, map(matches, python(lane, chosen)))
        else:
            rows.fault(faults.number("TypeError: LIKE compares texts, not numbers"), where)
    return rows.value(value.fault)


def _fixed(part: str) -> str:
    return "".join("." if one == "_" else re.escape(one) for one in part)
