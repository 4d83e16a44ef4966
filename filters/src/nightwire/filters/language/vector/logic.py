"""Choices, truth and logic over columns, Python's and SQL's, and SQL's LIKE."""

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
    if not any(typed.kind in ("float", "npfloat") for typed in value.typed):
        return value
    builder = ValueBuilder(size)
    for typed in value.typed:
        if typed.kind not in ("float", "npfloat"):
            builder.add(typed.kind, typed.values, typed.mask(size))
            continue
        nan = np.isnan(typed.values)
        if typed.where is None and not nan.any():
            return value
        nan = np.broadcast_to(nan, size)
        where = typed.mask(size)
        builder.add("float", typed.values, where & ~nan)
        builder.none(where & nan)
    return builder.value(value.fault)


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
    for typed in value.typed:
        if typed.kind == "none":
            none |= typed.mask(size)
    where = None if value.fault is None else value.fault == 0
    return Value((TypedValues("bool", none, where),), value.fault)


def _logic(absorbing: bool) -> Callable[[Sequence[Value], int], Value]:
    """Return SQL's OR (*absorbing* True) or AND (False): unknown unless one side decides."""

    def apply(operands: Sequence[Value], size: int) -> Value:
        builder = ValueBuilder(size)
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
        builder.add("bool", answer, known)
        builder.none(~known & sound)
        return builder.value(fault)

    return apply


def _sides(value: Value, size: int) -> tuple[Array, Array, Array | None]:
    """Return where *value* is true, where false, and its faults; elsewhere it is unknown."""
    true, fault = truth(value, size)
    none = _is_none([value], size).typed[0].values
    false = ~true & ~none if fault is None else ~true & ~none & (fault == 0)
    return true, false, fault


def _sql_not(operands: Sequence[Value], size: int) -> Value:
    true, false, fault = _sides(of_sql(operands[0], size), size)
    builder = ValueBuilder(size)
    builder.add("bool", false, true | false)
    builder.none(~(true | false) if fault is None else ~(true | false) & (fault == 0))
    return builder.value(fault)


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
    """Return a matcher of texts *like* a pattern, in time linear in their lengths.

    What stands between two ``%`` has a fixed length, and where it is found first is as good as any
    place: so nothing is ever tried again, as one regular expression for all would.
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
    builder = ValueBuilder(size)
    matches = matcher(text)
    for typed in value.typed:
        where = typed.mask(size)
        if typed.kind == "none":
            builder.none(where)
        elif typed.kind == "str":
            chosen = np.flatnonzero(where)
            builder.scatter(chosen, map(matches, python(typed, chosen)))
        else:
            builder.fault(faults.number("TypeError: LIKE compares texts, not numbers"), where)
    return builder.value(value.fault)


def _fixed(part: str) -> str:
    return "".join("." if one == "_" else re.escape(one) for one in part)
