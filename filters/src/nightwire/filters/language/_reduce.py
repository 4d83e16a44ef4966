"""One value of many: sums, extremes, means of each alert's points, to the bit as Python and NumPy make them.

Alerts with equally many points are put into one matrix, along whose rows NumPy does what it does to an array.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from nightwire.filters.language._apply import function_of
from nightwire.filters.language._points import Extent, first_of_each
from nightwire.filters.language._values import (
    SAME_AS_NUMPY,
    TYPES,
    UNSURE,
    Array,
    Faults,
    Lane,
    Rows,
    Value,
    objects,
    truth,
)

Matrix = Callable[[Array], tuple[Any, Array | None]]
"""Of shape (alerts, points): a value for each alert, and which alerts Python has to do itself."""


def any_or_all(name: str, extent: Extent, item: Value) -> Value:
    """Return ``any`` or ``all``, which ask no further once they know."""
    true, _ = truth(item, len(extent))
    fault = extent.faulty(item)
    decides = true if name == "any" else ~true
    alerts, first = first_of_each(extent, decides if fault is None else decides | (fault != 0))
    found = np.full(len(extent.lengths), name == "all")
    found[alerts] = true[first]
    rows = Rows(len(found))
    if fault is None:
        rows.lane("bool", found, None)
        return rows.value()
    codes = np.zeros(len(found), np.int32)
    codes[alerts] = fault[first]
    rows.lane("bool", found, codes == 0)
    return rows.value(codes)


def sound(extent: Extent, item: Value) -> Value:
    """Return nothing; the fault of the first point that has one."""
    fault = extent.faulty(item)
    if fault is None:
        return Value((Lane("none", None, None),))
    codes = _of_first(extent, fault)
    return Value((Lane("none", None, codes == 0),), codes)


def array(extent: Extent, item: Value) -> Value:
    """Return the values as an array has them: all of a list whole numbers, or all floats."""
    kinds = {lane.kind for lane in item.lanes}
    if len(kinds) == 1 and (item.lanes[0].kind in SAME_AS_NUMPY or item.lanes[0].kind in ("str", "npfloat")):
        lane = item.lanes[0]
        values = lane.values if isinstance(lane.values, np.ndarray) else np.full(len(extent), lane.values)
        return Value((Lane(SAME_AS_NUMPY.get(lane.kind, lane.kind), values, lane.where),), item.fault)
    return _mixed(extent, item)


def _mixed(extent: Extent, item: Value) -> Value:
    """Return an array's values of lists of whole numbers and floats together; others are unsure."""
    rows = Rows(len(extent))
    values = np.zeros(len(extent))
    numbers = np.zeros(len(extent), bool)
    for lane in item.lanes:
        if lane.kind in ("float", "npfloat", "int", "npint"):
            here = np.ones(len(extent), bool) if lane.where is None else lane.where
            values = np.where(here, lane.values, values)
            numbers |= here
    whole = np.ones(len(extent.lengths), bool)
    floats = np.zeros(len(extent.lengths), bool)
    whole[extent.owners[~numbers]] = False
    for lane in item.lanes:
        if lane.kind in ("float", "npfloat"):
            floats[extent.owners if lane.where is None else extent.owners[lane.where]] = True
    sure = (whole & floats)[extent.owners] & numbers
    rows.lane("npfloat", values, sure)
    rows.fault(np.where(sure, 0, UNSURE))
    return rows.value(item.fault)


def reduced(name: str, extent: Extent, item: Value, faults: Faults, extra: int = 0) -> Value:
    """Return the reduction *name* of each alert's points."""
    rows = Rows(len(extent.lengths))
    fault = extent.faulty(item)
    codes = np.zeros(rows.size, np.int32) if fault is None else _of_first(extent, fault)
    left = codes == 0
    quick = QUICK.get(name)
    lane = _main(item)
    if quick is not None and lane is not None and lane.kind in ("float", "npfloat"):
        with suppress(TypeError, ValueError):  # no such percentile: each list tells
            left &= ~_by_matrix(partial(quick, extra), lane, _result(name, lane.kind), extent, left, rows)
    chosen = np.flatnonzero(left)
    function = partial(_one, name, extra)
    _row_by_row(
        function, [objects(item, _points(extent, at)) for at in chosen.tolist()], chosen, rows, faults
    )
    return rows.value(codes if codes.any() else None)


def folded(start: Value, extent: Extent, item: Value, faults: Faults) -> Value:
    """Return *start* and then each of the points added, in their order."""
    rows = Rows(len(extent.lengths))
    fault = extent.faulty(item)
    codes = np.zeros(rows.size, np.int32) if fault is None else _of_first(extent, fault)
    if start.fault is not None:
        codes = np.where(start.fault, start.fault, codes)
    chosen = np.flatnonzero(codes == 0)
    first = objects(start, chosen)
    lists = [
        [one, *objects(item, _points(extent, at))] for one, at in zip(first, chosen.tolist(), strict=True)
    ]
    _row_by_row(partial(reduce, add), lists, chosen, rows, faults)
    return rows.value(codes if codes.any() else None)


def _points(extent: Extent, alert: int) -> Array:
    return np.arange(extent.offsets[alert], extent.offsets[alert + 1])


def _of_first(extent: Extent, fault: Array) -> Array:
    codes = np.zeros(len(extent.lengths), np.int32)
    alerts, first = first_of_each(extent, fault != 0)
    codes[alerts] = fault[first]
    return codes


def _main(item: Value) -> Lane | None:
    """Return the lane that most points are in, if any is an array."""
    lanes = [lane for lane in item.lanes if isinstance(lane.values, np.ndarray)]
    return max(
        lanes, key=lambda lane: len(lane.values) if lane.where is None else lane.where.sum(), default=None
    )


def _by_matrix(quick: Matrix, lane: Lane, kind: str, extent: Extent, left: Array, rows: Rows) -> Array:
    """Reduce the alerts whose points are all in *lane*; return which were."""
    able = left & (extent.lengths > 0)
    if lane.where is not None:
        able[extent.owners[~lane.where]] = False
    found: Array | None = None
    for alerts, points in extent.groups:
        whole = able[alerts]
        if not whole.any():
            continue
        values, failed = quick(lane.values[points if whole.all() else points[whole]])
        done = alerts[whole]
        if failed is not None:
            able[done[failed]] = False
        if found is None:
            found = np.zeros(rows.size, np.asarray(values).dtype)
        found[done] = values
    if found is not None:
        rows.lane(kind, found, able)
    return able


def _row_by_row(function: Any, lists: list[Any], chosen: Array, rows: Rows, faults: Faults) -> None:
    good, values = [], []
    codes = np.zeros(rows.size, np.int32)
    for at, one in zip(chosen.tolist(), lists, strict=True):
        if any(type(value) is str for value in one):
            codes[at] = UNSURE  # texts can grow
            continue
        try:
            values.append(function(one))
            good.append(at)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this alert's fault
            codes[at] = faults.of(error)
    if codes.any():
        rows.fault(codes)
    rows.scatter(np.array(good, np.int64), values)


def _one(name: str, extra: int, values: list[Any]) -> Any:
    """Do to one list what Python or NumPy does."""
    module, _, function = name.rpartition(".")
    if not module:
        return function_of(name)(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = getattr(np, function)
        if function in WITH_DDOF:
            return found(np.array(values), ddof=extra)
        return found(np.array(values), extra) if function == "percentile" else found(np.array(values))


WITH_DDOF = frozenset({"std", "var", "nanstd", "nanvar"})


def _along(name: str) -> Callable[[int, Array], tuple[Any, Array | None]]:
    function = getattr(np, name)

    def quick(extra: int, matrix: Array) -> tuple[Any, Array | None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name in WITH_DDOF:
                return function(matrix, axis=1, ddof=extra), None
            if name == "percentile":
                return function(matrix, extra, axis=1), None
            return function(matrix, axis=1), None

    return quick


def _sum(extra: int, matrix: Array) -> tuple[Any, Array | None]:
    return np.cumsum(matrix, axis=1)[:, -1] + 0.0, None


def _extreme(function: Any) -> Callable[[int, Array], tuple[Any, Array | None]]:
    def quick(extra: int, matrix: Array) -> tuple[Any, Array | None]:
        found = function(matrix, axis=1)
        return found, np.isnan(found)

    return quick


NUMPY = (
    "sum", "mean", "max", "min", "any", "all", "prod", "nansum", "nanmean", "nanmax", "nanmin", "argmax",
    "argmin", "count_nonzero", "ptp", "median", "std", "var", "nanstd", "nanvar", "percentile",
)  # fmt: skip

QUICK: Mapping[str, Callable[[int, Array], tuple[Any, Array | None]]] = {
    **{f"np.{name}": _along(name) for name in NUMPY},
    "max": _extreme(np.max),
    "min": _extreme(np.min),
    **(
        {} if sys.version_info >= (3, 12) else {"sum": _sum}
    ),  # since then, Python corrects what rounding loses
}


COUNTED = TYPES[type(np.count_nonzero(np.zeros(1)))]
"""What counting gives: a whole number of Python's, or, in later versions, of NumPy's."""


def _result(name: str, kind: str) -> str:
    function = name.rpartition(".")[2]
    if not name.startswith("np."):
        return kind
    kinds = {"any": "npbool", "all": "npbool", "argmax": "npint", "argmin": "npint", "count_nonzero": COUNTED}
    return kinds.get(function, "npfloat")
