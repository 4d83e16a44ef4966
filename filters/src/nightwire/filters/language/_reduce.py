"""One value of many: sums, extremes, means of each alert's points, to the bit as Python and NumPy make them.

Alerts with equally many points are put into one matrix, along whose rows NumPy does what it does to an array.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from nightwire.filters.language._along import Along, along, kind_of, of_numpy
from nightwire.filters.language._apply import Apply, function_of
from nightwire.filters.language._points import Extent, first_of_each, lift, of_first
from nightwire.filters.language._values import (
    EXACT,
    UNSURE,
    Array,
    Faults,
    Lane,
    Rows,
    Value,
    objects,
    truth,
)


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


def reduced(name: str, extent: Extent, item: Value, faults: Faults, extra: float = 0) -> Value:
    """Return the reduction *name* of each alert's points."""
    rows = Rows(len(extent.lengths))
    fault = extent.faulty(item)
    codes = np.zeros(rows.size, np.int32) if fault is None else of_first(extent, fault)
    if fault is not None and name in AS_IT_GOES:
        codes = _sooner(codes, fault, extent, item, function_of(name), faults)
    left = codes == 0
    lane = _main(item, len(extent))
    function = along(name, lane.kind) if lane is not None else None
    if lane is not None and function is not None:
        with suppress(TypeError, ValueError):  # no such percentile: each list tells
            left &= ~_by_matrix(function, name, extra, lane, extent, left, rows)
    one = partial(_one, name, extra)
    _nothing(one, left & (extent.lengths == 0), rows, faults)
    chosen = np.flatnonzero(left & (extent.lengths > 0))
    _row_by_row(one, _lists(extent, item, chosen), chosen, rows, faults)
    return rows.value(codes if codes.any() else None)


def folded(start: Value, extent: Extent, item: Value, faults: Faults) -> Value:
    """Return *start* and then each of the points added, in their order."""
    rows = Rows(len(extent.lengths))
    fault = extent.faulty(item)
    codes = np.zeros(rows.size, np.int32) if fault is None else of_first(extent, fault)
    if fault is not None:
        codes = _sooner(codes, fault, extent, item, partial(reduce, add), faults, start)
    if start.fault is not None:
        codes = np.where(start.fault, start.fault, codes)
    left = codes == 0
    lane = _main(item, len(extent))
    if lane is not None and len(start.lanes) == 1:
        left &= ~_added_up(start.lanes[0], lane, extent, left, rows)
    chosen = np.flatnonzero(left)
    lists = zip(objects(start, chosen), _lists(extent, item, chosen), strict=True)
    _row_by_row(partial(reduce, add), [[one, *some] for one, some in lists], chosen, rows, faults)
    return rows.value(codes if codes.any() else None)


def among(value: Value, extent: Extent, item: Value, apply: Apply) -> Value:
    """Return whether *value* is one of each alert's points; NaN, which may be the very same, is unsure."""
    found = any_or_all("any", extent, apply("==", [lift(extent, value), item], len(extent)))
    rows = Rows(len(extent.lengths))
    if value.fault is not None:
        rows.fault(value.fault)
    for lane in value.lanes:
        if lane.kind in ("float", "npfloat"):
            nan = np.isnan(np.broadcast_to(lane.values, rows.size))
            rows.fault(UNSURE, nan if lane.where is None else nan & lane.where)
    faulty = rows.value(found.fault).fault
    for lane in found.lanes:
        rows.lane(lane.kind, lane.values, None if faulty is None else faulty == 0)
    return rows.value()


def distinct(extent: Extent, item: Value, faults: Faults) -> Value:
    """Return how many different points each alert has; NaN, which may be the same twice, is unsure."""
    rows = Rows(len(extent.lengths))
    fault = extent.faulty(item)
    codes = np.zeros(rows.size, np.int32) if fault is None else of_first(extent, fault)
    chosen = np.flatnonzero(codes == 0)
    lists = [set(some) for some in _lists(extent, item, chosen)]
    nan = np.array([any(one != one for one in some) for some in lists], bool)
    codes[chosen[nan]] = UNSURE
    rows.scatter(chosen[~nan], [len(some) for some, odd in zip(lists, nan, strict=True) if not odd])
    return rows.value(codes if codes.any() else None)


AS_IT_GOES = frozenset({"sum", "max", "min"})
"""What takes value after value as each is made; NumPy takes them all together."""


def _sooner(
    codes: Array, fault: Array, extent: Extent, item: Value, function: Callable[[list[Any]], Any],
    faults: Faults, start: Value | None = None,
) -> Array:  # fmt: skip
    """Return *codes*, those of alerts replaced whose values fail together before one of them does alone."""
    found = codes.copy()
    alerts, first = first_of_each(extent, fault != 0)
    begun = [None] * len(alerts) if start is None else objects(start, alerts)
    for alert, end, one in zip(alerts.tolist(), first.tolist(), begun, strict=True):
        values = objects(item, np.arange(extent.offsets[alert], end))
        values = values if start is None else [one, *values]
        try:
            function(values or [0])
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this alert's fault
            found[alert] = faults.of(error)
    return found


def _lists(extent: Extent, item: Value, chosen: Array) -> list[list[Any]]:
    """Return the values of each of the *chosen* alerts."""
    lengths = extent.lengths[chosen]
    ends = np.cumsum(lengths)
    first = np.repeat(extent.offsets[chosen] - ends + lengths, lengths)
    values = objects(item, first + np.arange(len(first)))
    spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [values[begin:end] for begin, end in spans]


def _main(item: Value, size: int) -> Lane | None:
    """Return the lane of numbers that most points are in, its values an array."""
    lanes = [lane for lane in item.lanes if lane.kind not in ("none", "str", "tuple")]
    if not lanes:
        return None
    found = max(lanes, key=lambda lane: size if lane.where is None else lane.where.sum())
    return found._replace(values=np.broadcast_to(np.asarray(found.values), size))


def _by_matrix(
    function: Along, name: str, extra: float, lane: Lane, extent: Extent, left: Array, rows: Rows
) -> Array:
    """Reduce the alerts whose points are all in *lane*; return which were."""
    able = _whole(lane, extent, left)
    found: Array | None = None
    for alerts, points in _groups(extent, able):
        values, failed = function(extra, lane.values[points])
        if failed is not None:
            able[alerts[failed]] = False
        if found is None:
            found = np.zeros(rows.size, np.asarray(values).dtype)
        found[alerts] = values
    if found is not None:
        rows.lane(kind_of(name, lane.kind, found), found, able)
    return able


def _added_up(start: Lane, lane: Lane, extent: Extent, left: Array, rows: Rows) -> Array:
    """Add up the alerts whose points are all in *lane*, numbers of Python's; return which were."""
    whole = "bool", "int"
    if start.kind not in (*whole, "float") or lane.kind not in (*whole, "float"):
        return np.zeros(rows.size, bool)
    kind = "float" if "float" in (start.kind, lane.kind) else "int"
    able = _whole(lane, extent, left)
    found = np.zeros(rows.size, float if kind == "float" else np.int64)
    first = np.broadcast_to(np.asarray(start.values), rows.size)
    for alerts, points in _groups(extent, able):
        parts = first[alerts][:, None], lane.values[points]
        failed = np.zeros(len(alerts), bool)
        for part in parts:
            if part.dtype.kind == "i":
                failed |= np.abs(part.astype(float)).sum(axis=1) >= EXACT
        matrix = np.concatenate([part.astype(found.dtype) for part in parts], axis=1)
        found[alerts] = np.cumsum(matrix, axis=1)[:, -1]
        able[alerts[failed]] = False
    if able.any():
        rows.lane(kind, found, able)
    return able


def _whole(lane: Lane, extent: Extent, left: Array) -> Array:
    """Return which of the alerts *left* have points, all in *lane*."""
    able = left & (extent.lengths > 0)
    if lane.where is not None:
        able[extent.owners[~lane.where]] = False
    return able


def _groups(extent: Extent, able: Array) -> Iterator[tuple[Array, Array]]:
    """Yield those of the groups of *extent* who are *able*."""
    for alerts, points in extent.groups:
        whole = able[alerts]
        if whole.all():
            yield alerts, points
        elif whole.any():
            yield alerts[whole], points[whole]


def _nothing(function: Callable[[list[Any]], Any], where: Array, rows: Rows, faults: Faults) -> None:
    """Reduce the empty lists, which are all alike."""
    if not where.any():
        return
    try:
        found = function([])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is these alerts' fault
        rows.fault(faults.of(error), where)
    else:
        chosen = np.flatnonzero(where)
        rows.scatter(chosen, [found] * len(chosen))


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


def _one(name: str, extra: float, values: list[Any]) -> Any:
    """Do to one list what Python or NumPy does."""
    module, _, function = name.rpartition(".")
    return of_numpy(function, extra, np.array(values)) if module else function_of(name)(values)
