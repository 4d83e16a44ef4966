"""Evaluating the nodes of programs over the columns of a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nightwire.filters.language.operations import REDUCTIONS, SCALAR, SQL
from nightwire.filters.language.program import Node
from nightwire.filters.language.vector import ragged, reduce, select
from nightwire.filters.language.vector.apply import Apply
from nightwire.filters.language.vector.logic import CONTROL, like, of_sql
from nightwire.filters.language.vector.ragged import RaggedPoints
from nightwire.filters.language.vector.values import (
    NEEDS_PYTHON,
    NONE,
    Array,
    FaultTable,
    TypedValues,
    Value,
    ValueBuilder,
    constant,
    of_array,
    of_column,
)
from nightwire.schemas import AlertTable, Column

Result = Value | RaggedPoints


class Run:
    """Evaluates nodes, one after the other, over one table.

    Args:
        table: The alerts.
    """

    def __init__(self, table: AlertTable) -> None:
        self.table = table
        self.size = len(table)
        self.faults = FaultTable()
        self.apply = Apply(self.faults)
        self.apply_sql = Apply(self.faults, sql=True)

    def node(self, node: Node, operands: Sequence[Any], size: int) -> Result:
        """Return the result of a node.

        Args:
            node: Its operation and literals.
            operands: The results of the nodes that it refers to.
            size: How many values it has.
        """
        name = node[0]
        if name in SCALAR:
            return self.apply(name, operands, size)
        if name in SQL:
            return self._sql(node, operands, size)
        if name in LEAVES:
            return LEAVES[name](self, *node[1:])
        if name in CONTROL:
            return CONTROL[name](operands, size)
        return self._points(node, operands)

    def _points(self, node: Node, operands: Sequence[Any]) -> Result:
        name, first = node[0], operands[0]
        if name in OF_POINTS:
            return OF_POINTS[name](self, node, operands)
        if name in ("any", "all"):
            return reduce.any_or_all(name, first, operands[1])
        if name not in REDUCTIONS:
            raise LookupError(name)
        return reduce.reduced(name, first, operands[1], self.faults, *node[3:])

    def _sql(self, node: Node, operands: Sequence[Value], size: int) -> Value:
        name = node[0].partition(".")[2]
        operands = [of_sql(one, size) for one in operands]
        nothing = [typed for one in operands for typed in one.typed if typed.kind == "none"]
        if name == "like":
            return like(operands[0], node[2], size, self.faults)
        if not nothing:
            return of_sql(self.apply_sql(name, operands, size), size)
        null = np.zeros(size, bool)
        for typed in nothing:
            null |= typed.mask(size)
        rest = [_without_none(one, ~null) for one in operands]
        found = of_sql(self.apply_sql(name, rest, size), size) if not null.all() else Value(())
        fault = found.fault
        for one in operands:
            if one.fault is not None:
                fault = one.fault if fault is None else np.where(one.fault, one.fault, fault)
        return _joined(found, null, fault, size)

    def column(self, name: str) -> Column | None:
        """Return a column of the table; None where it has none of that name."""
        try:
            return self.table[name]
        except KeyError:
            return None

    def presence(self, path: str) -> Array | None:
        """Return where the record at *path* is there; None where the schema has none."""
        column = self.column(f"{path}?")
        if column is None:
            return None
        if column.offsets is None:
            return np.asarray(column.values, bool) & ~column.null
        return np.ones(self.size, bool) if column.absent is None else ~column.absent


def _without_none(value: Value, there: Array) -> Value:
    typed_values = [
        TypedValues(typed.kind, typed.values, typed.within(there))
        for typed in value.typed
        if typed.kind != "none"
    ]
    return Value(tuple(typed_values), value.fault)


def _joined(found: Value, null: Array, fault: Array | None, size: int) -> Value:
    builder = ValueBuilder(size)
    for typed in found.typed:
        builder.add(typed.kind, typed.values, ~null if typed.where is None else typed.where)
    builder.none(null if fault is None else null & (fault == 0))
    return builder.value(fault)


def _item(run: Run, name: str, points: RaggedPoints) -> Value:
    if points.own is not None:
        return of_array(points.own, np.zeros(len(points.own), bool), numpy=True)
    column = run.column(f"{points.name}.{name}")
    if column is None or column.offsets is None:
        code = run.faults.number(f"KeyError: {name!r}")
        return Value((), np.full(len(points), code, np.int32))
    if points.name == "light_curve":
        return of_array(column.values, np.zeros(len(column.values), bool), numpy=True)
    return of_column(column)


def _each(run: Run, points: RaggedPoints) -> Value:
    if points.absent is None:
        return NONE
    code = run.faults.number("TypeError: 'NoneType' object is not iterable")
    fault = np.where(points.absent, code, 0)
    if points.failed is not None:
        fault = np.where(points.failed, points.failed, fault)
    return Value((TypedValues("none", None, ~points.absent),), fault.astype(np.int32))


OF_POINTS: Mapping[str, Callable[[Run, Node, Sequence[Any]], Result]] = {
    "item": lambda run, node, given: _item(run, node[2], given[0]),
    "lift": lambda run, node, given: ragged.broadcast(*given),
    "where": lambda run, node, given: ragged.where(*given),
    "slice": lambda run, node, given: ragged.cut(given[0], *node[2:]),
    "sift": lambda run, node, given: ragged.take_kept(*given),
    "before": lambda run, node, given: ragged.before(*given),
    "sorted": lambda run, node, given: select.in_order(
        given[0], given[1], run.faults, backwards=bool(node[3])
    ),
    "best": lambda run, node, given: select.best(given[0], given[1], run.faults, largest=bool(node[3])),
    "nth": lambda run, node, given: select.nth(given[0], given[1], run.faults),
    "chosen": lambda run, node, given: select.failure(given[0]),
    "array": lambda run, node, given: ragged.array(*given),
    "sound": lambda run, node, given: ragged.sound(*given),
    "count": lambda run, node, given: Value((TypedValues("int", given[0].lengths, None),)),
    "each": lambda run, node, given: _each(run, given[0]),
    "at": lambda run, node, given: ragged.at(given[0], given[1], node[3], run.faults),
    "among": lambda run, node, given: reduce.among(given[0], given[1], given[2], run.apply),
    "distinct": lambda run, node, given: reduce.distinct(given[0], given[1], run.faults),
    "fold": lambda run, node, given: reduce.folded(given[0], given[1], given[2], run.faults),
}


def _field(run: "Run", path: str, *, strict: bool) -> Value:
    column = run.column(path)
    name = path.rpartition(".")[2]
    if column is not None and column.offsets is None:
        value = of_column(column)
        return _with_parents(run, path, value) if strict and column.null.any() else value
    there = run.presence(path)
    if there is not None:
        return Value((TypedValues("none", None, ~there),), np.where(there, NEEDS_PYTHON, 0).astype(np.int32))
    if not strict:
        return NONE
    return _with_parents(run, path, _fault(run, f"KeyError: {name!r}"))


def _with_parents(run: "Run", path: str, value: Value) -> Value:
    """Return *value* with a fault where the record that it lies in is None."""
    steps = path.split(".")
    for end in range(1, len(steps)):
        there = run.presence(".".join(steps[:end]))
        if there is not None and not there.all():
            code = run.faults.number("TypeError: 'NoneType' object is not subscriptable")
            gone = np.where(there, 0, code).astype(np.int32)
            builder = ValueBuilder(run.size)
            builder.fault(gone)
            for typed in value.typed:
                builder.add(typed.kind, typed.values, typed.within(there))
            return builder.value(value.fault)
    return value


def _sql_field(run: "Run", path: str) -> Value:
    column = run.column(path)
    if column is None or column.offsets is not None:
        why = (
            "KeyError: the alerts have no such field"
            if column is None
            else "TypeError: a list of values is no value"
        )
        return _fault(run, f"{why}: {path}")
    value = of_column(column)
    if value.fault is None:
        return value
    code = run.faults.number(f"TypeError: {path} is neither number nor text")
    return Value(value.typed, np.where(value.fault, code, 0).astype(np.int32))


def _has(run: "Run", path: str) -> Value:
    there = run.presence(path)
    return constant(False) if there is None else Value((TypedValues("bool", there, None),))


def _known(run: "Run", path: str) -> Value:
    return constant(run.presence(path) is not None)


def _fault(run: "Run", said: str) -> Value:
    return Value((), np.full(run.size, run.faults.number(said), np.int32))


def _made(run: "Run", name: str, *arguments: Any) -> Value:
    try:
        return of_column(getattr(run.table, name)(*arguments))
    except KeyError:
        return _fault(run, f"KeyError: {name!r}")


def _magnitudes(run: "Run", band: str) -> RaggedPoints:
    try:
        column = run.table.magnitudes(band)
    except KeyError:
        return RaggedPoints(np.zeros(run.size + 1, np.int64), own=np.zeros(0))
    return RaggedPoints(np.asarray(column.offsets), own=column.values)


def _list(run: "Run", name: str) -> RaggedPoints:
    known = {"history": "history.mjd_tai", "light_curve": "light_curve.mjd_tai"}
    column = run.column(known.get(name, f"{name}?"))
    if column is None or column.offsets is None:
        there = run.presence(name) if column is not None else None
        # a text, which has items as well
        odd = None if there is None else np.where(there, NEEDS_PYTHON, 0)
        return RaggedPoints(
            np.zeros(run.size + 1, np.int64), absent=np.ones(run.size, bool), failed=odd, name=name
        )
    absent = None if name in known or column.absent is None or not column.absent.any() else column.absent
    return RaggedPoints(column.offsets, absent=absent, name=name)


LEAVES: Mapping[str, Callable[..., Value | RaggedPoints]] = {
    "const": lambda run, value: constant(value),
    "field": lambda run, path: _field(run, path, strict=True),
    "lenient": lambda run, path: _field(run, path, strict=False),
    "sql.field": _sql_field,
    "has": _has,
    "known": _known,
    "fault": _fault,
    "points": _list,
    "magnitudes": _magnitudes,
    "colour": lambda run, blue, red: _made(run, "colour", blue, red),
    "healpix_at": lambda run, order: _made(run, "healpix_at", order),
}
