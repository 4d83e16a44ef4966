"""What programs read of a table: fields, lists of points, and what is made of them for an alert."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nightwire.filters.language._columns import of_column
from nightwire.filters.language._points import Extent
from nightwire.filters.language._values import NONE, UNSURE, Lane, Rows, Value, constant

if TYPE_CHECKING:
    from nightwire.filters.language._run import Run


def _field(run: "Run", path: str, *, strict: bool) -> Value:
    column = run.column(path)
    name = path.rpartition(".")[2]
    if column is not None and column.offsets is None:
        value = of_column(column)
        return _with_parents(run, path, value) if strict and column.null.any() else value
    there = run.presence(path)
    if there is not None:
        return Value((Lane("none", None, ~there),), np.where(there, UNSURE, 0).astype(np.int32))
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
            rows = Rows(run.size)
            rows.fault(gone)
            for lane in value.lanes:
                rows.lane(lane.kind, lane.values, there if lane.where is None else there & lane.where)
            return rows.value(value.fault)
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
    return Value(value.lanes, np.where(value.fault, code, 0).astype(np.int32))


def _has(run: "Run", path: str) -> Value:
    there = run.presence(path)
    return constant(False) if there is None else Value((Lane("bool", there, None),))


def _known(run: "Run", path: str) -> Value:
    return constant(run.presence(path) is not None)


def _fault(run: "Run", said: str) -> Value:
    return Value((), np.full(run.size, run.faults.number(said), np.int32))


def _made(run: "Run", name: str, *arguments: Any) -> Value:
    try:
        return of_column(getattr(run.table, name)(*arguments))
    except KeyError:
        return _fault(run, f"KeyError: {name!r}")


def _magnitudes(run: "Run", band: str) -> Extent:
    try:
        column = run.table.magnitudes(band)
    except KeyError:
        return Extent(np.zeros(run.size + 1, np.int64), own=np.zeros(0))
    return Extent(np.asarray(column.offsets), own=column.values)


def _list(run: "Run", name: str) -> Extent:
    known = {"history": "history.mjd_tai", "light_curve": "light_curve.mjd_tai"}
    column = run.column(known.get(name, f"{name}?"))
    if column is None or column.offsets is None:
        there = run.presence(name) if column is not None else None
        odd = None if there is None else np.where(there, UNSURE, 0)  # a text, which has items as well
        return Extent(np.zeros(run.size + 1, np.int64), absent=np.ones(run.size, bool), failed=odd, name=name)
    absent = None if name in known or column.absent is None or not column.absent.any() else column.absent
    return Extent(column.offsets, absent=absent, name=name)


LEAVES: Mapping[str, Callable[..., Value | Extent]] = {
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
