"""Lists of points of many alerts: which points belong to which alert."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from nightwire.filters.language.vector.apply import first_fault
from nightwire.filters.language.vector.values import (
    NEEDS_PYTHON,
    SAME_AS_NUMPY,
    Array,
    FaultTable,
    TypedValues,
    Value,
    ValueBuilder,
    take,
    truth,
)


@dataclass(frozen=True, eq=False)
class RaggedPoints:
    """Lists of points, of n alerts.

    Attributes:
        offsets: Shape (n + 1,): alert i has the points from ``offsets[i]`` to ``offsets[i + 1]``.
        kept: For each point, its place in the list that this was chosen from; None where it was not.
        broken: For each point, the fault of the condition by which it was chosen; None where there is none.
        absent: For each alert, whether it has no list at all; None where all have.
        failed: For each alert, the fault of choosing its points; None where there is none.
        name: What the table calls it; empty for points that were chosen.
        own: The values of points that are numbers themselves, at those that an alert has.
    """

    offsets: Array
    kept: Array | None = None
    broken: Array | None = None
    absent: Array | None = None
    failed: Array | None = None
    name: str = ""
    own: Array | None = None

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def lengths(self) -> Array:
        """For each alert, how many points it has."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> Array:
        """For each point, its alert."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def groups(self) -> list[tuple[Array, Array]]:
        """Alerts with equally many points, and their points, of shape (alerts, points); none without."""
        order = np.argsort(self.lengths, kind="stable")
        lengths = self.lengths[order]
        starts = np.flatnonzero(np.diff(lengths, prepend=0))
        found = []
        for begin, end in pairwise([*starts, len(lengths)]):
            alerts = order[begin:end]
            found.append((alerts, self.offsets[alerts][:, None] + np.arange(lengths[begin])))
        return found

    def faulty(self, item: Value) -> Array | None:
        """Return the faults of a value per point, that of the point itself first."""
        return first_fault([Value((), self.broken), item])


def where(extent: RaggedPoints, condition: Value) -> RaggedPoints:
    """Return the points where *condition* is true, and those where it has a fault."""
    chosen, fault = truth(condition, len(extent))
    fault = first_fault([Value((), extent.broken), Value((), fault)])
    kept = np.flatnonzero(chosen if fault is None else chosen | (fault != 0))
    counts = np.bincount(extent.owners[kept], minlength=len(extent.lengths))
    broken = None if fault is None else fault[kept]
    return RaggedPoints(_offsets(counts), kept, broken if broken is not None and broken.any() else None)


def cut(extent: RaggedPoints, start: int | None, stop: int | None) -> RaggedPoints:
    """Return each list's points from *start* to *stop*, as Python slices."""
    lengths = extent.lengths
    begin = np.zeros_like(lengths) if start is None else _end(start, lengths)
    end = lengths if stop is None else _end(stop, lengths)
    counts = np.maximum(end - begin, 0)
    offsets = _offsets(counts)
    first = np.repeat(extent.offsets[:-1] + begin - offsets[:-1], counts)
    kept = first + np.arange(offsets[-1])
    return RaggedPoints(offsets, kept, None if extent.broken is None else extent.broken[kept])


def broadcast(extent: RaggedPoints, value: Value) -> Value:
    """Return an alert's value for each of its points."""
    return take(value, extent.owners)


def take_kept(extent: RaggedPoints, value: Value) -> Value:
    """Return the values at the points that were kept."""
    return value if extent.kept is None else take(value, extent.kept)


def before(extent: RaggedPoints, value: Value) -> Value:
    """Return, for the points that were kept, the values of the points before them."""
    return value if extent.kept is None else take(value, extent.kept - 1)


def at(extent: RaggedPoints, item: Value, index: int, faults: FaultTable) -> Value:
    """Return the value at the point number *index* of each list; IndexError where there is none."""
    place, there = placed(extent, index)
    missing = np.where(there, 0, faults.number("IndexError: list index out of range")).astype(np.int32)
    if not there.any():
        return Value((), missing)
    found = take(item, np.where(there, place, place[there][0]))
    if there.all():
        return found
    rows = ValueBuilder(len(there))
    for lane in found.lanes:
        rows.lane(lane.kind, lane.values, there if lane.where is None else there & lane.where)
    if found.fault is not None:
        rows.fault(found.fault, there)
    return rows.value(missing)


def placed(extent: RaggedPoints, index: int | Array) -> tuple[Array, Array]:
    """Return where the point number *index* of each list is, and which lists have one."""
    lengths = extent.lengths
    there = (index < lengths) & (index >= -lengths)
    return np.where(index >= 0, extent.offsets[:-1], extent.offsets[1:]) + index, there


def first_of_each(extent: RaggedPoints, chosen: Array) -> tuple[Array, Array]:
    """Return the alerts that have a *chosen* point, and the first such of each."""
    points = np.flatnonzero(chosen)
    alerts, first = np.unique(extent.owners[points], return_index=True)
    return alerts, points[first]


def of_first(extent: RaggedPoints, fault: Array) -> Array:
    """Return, for each alert, the fault of the first of its points that has one."""
    codes = np.zeros(len(extent.lengths), np.int32)
    alerts, first = first_of_each(extent, fault != 0)
    codes[alerts] = fault[first]
    return codes


def _end(end: int, lengths: Array) -> Array:
    return np.minimum(lengths, end) if end >= 0 else np.maximum(lengths + end, 0)


def _offsets(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def sound(extent: RaggedPoints, item: Value) -> Value:
    """Return nothing; the fault of the first point that has one."""
    fault = extent.faulty(item)
    if fault is None:
        return Value((TypedValues("none", None, None),))
    codes = of_first(extent, fault)
    return Value((TypedValues("none", None, codes == 0),), codes)


def array(extent: RaggedPoints, item: Value) -> Value:
    """Return the values as an array has them: all of a list whole numbers, or all floats."""
    kinds = {lane.kind for lane in item.lanes}
    if len(kinds) == 1 and (item.lanes[0].kind in SAME_AS_NUMPY or item.lanes[0].kind in ("str", "npfloat")):
        lane = item.lanes[0]
        values = lane.values if isinstance(lane.values, np.ndarray) else np.full(len(extent), lane.values)
        return Value((TypedValues(SAME_AS_NUMPY.get(lane.kind, lane.kind), values, lane.where),), item.fault)
    return _mixed(extent, item)


def _mixed(extent: RaggedPoints, item: Value) -> Value:
    """Return an array's values of lists of whole numbers and floats together; others are unsure."""
    rows = ValueBuilder(len(extent))
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
    rows.fault(np.where(sure, 0, NEEDS_PYTHON))
    return rows.value(item.fault)
