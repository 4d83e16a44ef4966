"""Evaluating the nodes of programs over the columns of a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nightwire.filters.language import _arrays as arrays
from nightwire.filters.language import _chosen as chosen
from nightwire.filters.language import _points as points
from nightwire.filters.language import _reduce as reduce
from nightwire.filters.language._apply import Apply
from nightwire.filters.language._columns import of_array, of_column
from nightwire.filters.language._leaves import LEAVES
from nightwire.filters.language._like import like
from nightwire.filters.language._logic import CONTROL, of_sql
from nightwire.filters.language._nodes import Node
from nightwire.filters.language._operations import REDUCTIONS, SCALAR, SQL
from nightwire.filters.language._points import Extent
from nightwire.filters.language._values import (
    NONE,
    Array,
    Faults,
    Lane,
    Rows,
    Value,
)
from nightwire.schemas import AlertTable, Column

Result = Value | Extent


class Run:
    """Evaluates nodes, one after the other, over one table.

    Args:
        table: The alerts.
    """

    def __init__(self, table: AlertTable) -> None:
        self.table = table
        self.size = len(table)
        self.faults = Faults()
        self.apply = Apply(self.faults)
        self.apply_sql = Apply(self.faults, sql=True)

    def node(self, node: Node, operands: Sequence[Any], extent: int) -> Result:
        """Return what a node gives.

        Args:
            node: Its operation and literals.
            operands: What the nodes gave that it refers to.
            extent: How many values it has.
        """
        name = node[0]
        if name in SCALAR:
            return self.apply(name, operands, extent)
        if name in SQL:
            return self._sql(node, operands, extent)
        if name in LEAVES:
            return LEAVES[name](self, *node[1:])
        if name in CONTROL:
            return CONTROL[name](operands, extent)
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
        nothing = [lane for one in operands for lane in one.lanes if lane.kind == "none"]
        if name == "like":
            return like(operands[0], node[2], size, self.faults)
        if not nothing:
            return of_sql(self.apply_sql(name, operands, size), size)
        null = np.zeros(size, bool)
        for lane in nothing:
            null |= True if lane.where is None else lane.where
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
    lanes = [
        Lane(lane.kind, lane.values, there if lane.where is None else there & lane.where)
        for lane in value.lanes
        if lane.kind != "none"
    ]
    return Value(tuple(lanes), value.fault)


def _joined(found: Value, null: Array, fault: Array | None, size: int) -> Value:
    rows = Rows(size)
    for lane in found.lanes:
        rows.lane(lane.kind, lane.values, ~null if lane.where is None else lane.where)
    rows.none(null if fault is None else null & (fault == 0))
    return rows.value(fault)


def _item(run: Run, name: str, extent: Extent) -> Value:
    if extent.own is not None:
        return of_array(extent.own, np.zeros(len(extent.own), bool), numpy=True)
    column = run.column(f"{extent.name}.{name}")
    if column is None or column.offsets is None:
        code = run.faults.number(f"KeyError: {name!r}")
        return Value((), np.full(len(extent), code, np.int32))
    if extent.name == "light_curve":
        return of_array(column.values, np.zeros(len(column.values), bool), numpy=True)
    return of_column(column)


def _each(run: Run, extent: Extent) -> Value:
    if extent.absent is None:
        return NONE
    code = run.faults.number("TypeError: 'NoneType' object is not iterable")
    fault = np.where(extent.absent, code, 0)
    if extent.failed is not None:
        fault = np.where(extent.failed, extent.failed, fault)
    return Value((Lane("none", None, ~extent.absent),), fault.astype(np.int32))


OF_POINTS: Mapping[str, Callable[[Run, Node, Sequence[Any]], Result]] = {
    "item": lambda run, node, given: _item(run, node[2], given[0]),
    "lift": lambda run, node, given: points.lift(*given),
    "where": lambda run, node, given: points.where(*given),
    "slice": lambda run, node, given: points.cut(given[0], *node[2:]),
    "sift": lambda run, node, given: points.sift(*given),
    "before": lambda run, node, given: points.before(*given),
    "sorted": lambda run, node, given: chosen.in_order(
        given[0], given[1], run.faults, backwards=bool(node[3])
    ),
    "best": lambda run, node, given: chosen.best(given[0], given[1], run.faults, largest=bool(node[3])),
    "nth": lambda run, node, given: chosen.nth(given[0], given[1], run.faults),
    "chosen": lambda run, node, given: chosen.failure(given[0]),
    "array": lambda run, node, given: arrays.array(*given),
    "sound": lambda run, node, given: arrays.sound(*given),
    "count": lambda run, node, given: Value((Lane("int", given[0].lengths, None),)),
    "each": lambda run, node, given: _each(run, given[0]),
    "at": lambda run, node, given: points.at(given[0], given[1], node[3], run.faults),
    "among": lambda run, node, given: reduce.among(given[0], given[1], given[2], run.apply),
    "distinct": lambda run, node, given: reduce.distinct(given[0], given[1], run.faults),
    "fold": lambda run, node, given: reduce.folded(given[0], given[1], given[2], run.faults),
}
