"""Ragged lists of points: which points belong to which alert, and values of them."""

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
        kept: For each point, its place in the list that this was chosen from; None where it was
            not.
        broken: For each point, the fault of the condition by which it was chosen; None: no fault.
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
        """Alerts with equally many points, and these, of shape (alerts, points); no empty lists."""
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


def where(ragged: RaggedPoints, condition: Value) -> RaggedPoints:
    """Return the points where *condition* is true, and those where it has a fault."""
    chosen, fault = truth(condition, len(ragged))
    fault = first_fault([Value((), ragged.broken), Value((), fault)])
    kept = np.flatnonzero(chosen if fault is None else chosen | (fault != 0))
    counts = np.bincount(ragged.owners[kept], minlength=len(ragged.lengths))
    broken = None if fault is None else fault[kept]
    return RaggedPoints(_offsets(counts), kept, broken if broken is not None and broken.any() else None)


def cut(ragged: RaggedPoints, start: int | None, stop: int | None) -> RaggedPoints:
    """Return each list's points from *start* to *stop*, as Python slices."""
    lengths = ragged.lengths
    begin = np.zeros_like(lengths) if start is None else _end(start, lengths)
    end = lengths if stop is None else _end(stop, lengths)
    counts = np.maximum(end - begin, 0)
    offsets = _offsets(counts)
    first = np.repeat(ragged.offsets[:-1] + begin - offsets[:-1], counts)
    kept = first + np.arange(offsets[-1])
    return RaggedPoints(offsets, kept, None if ragged.broken is None else ragged.broken[kept])


def broadcast(ragged: RaggedPoints, value: Value) -> Value:
    """Return an alert's value for each of its points."""
    return take(value, ragged.owners)


def take_kept(ragged: RaggedPoints, value: Value) -> Value:
    """Return the values at the points that were kept."""
    return value if ragged.kept is None else take(value, ragged.kept)


def before(ragged: RaggedPoints, value: Value) -> Value:
    """Return, for the points that were kept, the values of the points before them."""
    return value if ragged.kept is None else take(value, ragged.kept - 1)


def at(ragged: RaggedPoints, item: Value, index: int, faults: FaultTable) -> Value:
    """Return the value at the point number *index* of each list; IndexError where there is none."""
    place, there = placed(ragged, index)
    missing = np.where(there, 0, faults.number("IndexError: list index out of range")).astype(np.int32)
    if not there.any():
        return Value((), missing)
    found = take(item, np.where(there, place, place[there][0]))
    if there.all():
        return found
    builder = ValueBuilder(len(there))
    for typed in found.typed:
        builder.add(typed.kind, typed.values, typed.within(there))
    if found.fault is not None:
        builder.fault(found.fault, there)
    return builder.value(missing)


def placed(ragged: RaggedPoints, index: int | Array) -> tuple[Array, Array]:
    """Return where the point number *index* of each list is, and which lists have one."""
    lengths = ragged.lengths
    there = (index < lengths) & (index >= -lengths)
    return np.where(index >= 0, ragged.offsets[:-1], ragged.offsets[1:]) + index, there


def first_of_each(ragged: RaggedPoints, chosen: Array) -> tuple[Array, Array]:
    """Return the alerts that have a *chosen* point, and the first such of each."""
    points = np.flatnonzero(chosen)
    alerts, first = np.unique(ragged.owners[points], return_index=True)
    return alerts, points[first]


def of_first(ragged: RaggedPoints, fault: Array) -> Array:
    """Return, for each alert, the fault of the first of its points that has one."""
    codes = np.zeros(len(ragged.lengths), np.int32)
    alerts, first = first_of_each(ragged, fault != 0)
    codes[alerts] = fault[first]
    return codes


def _end(end: int, lengths: Array) -> Array:
    return np.minimum(lengths, end) if end >= 0 else np.maximum(lengths + end, 0)


def _offsets(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def sound(ragged: RaggedPoints, item: Value) -> Value:
    """Return None for each alert, or the fault of its first point that has one."""
    fault = ragged.faulty(item)
    if fault is None:
        return Value((TypedValues("none", None, None),))
    codes = of_first(ragged, fault)
    return Value((TypedValues("none", None, codes == 0),), codes)


def array(ragged: RaggedPoints, item: Value) -> Value:
    """Return the values as NumPy's array has them: of a list all whole numbers, or all floats."""
    kinds = {typed.kind for typed in item.typed}
    if len(kinds) == 1 and (item.typed[0].kind in SAME_AS_NUMPY or item.typed[0].kind in ("str", "npfloat")):
        typed = item.typed[0]
        values = typed.values if isinstance(typed.values, np.ndarray) else np.full(len(ragged), typed.values)
        return Value(
            (TypedValues(SAME_AS_NUMPY.get(typed.kind, typed.kind), values, typed.where),), item.fault
        )
    return _mixed(ragged, item)


def _mixed(ragged: RaggedPoints, item: Value) -> Value:
    """Return the values of arrays of whole numbers and floats together; others need Python."""
    builder = ValueBuilder(len(ragged))
    values = np.zeros(len(ragged))
    numbers = np.zeros(len(ragged), bool)
    for typed in item.typed:
        if typed.kind in ("float", "npfloat", "int", "npint"):
            here = typed.mask(len(ragged))
            values = np.where(here, typed.values, values)
            numbers |= here
    whole = np.ones(len(ragged.lengths), bool)
    floats = np.zeros(len(ragged.lengths), bool)
    whole[ragged.owners[~numbers]] = False
    for typed in item.typed:
        if typed.kind in ("float", "npfloat"):
            floats[ragged.owners if typed.where is None else ragged.owners[typed.where]] = True
    sure = (whole & floats)[ragged.owners] & numbers
    builder.add("npfloat", values, sure)
    builder.fault(np.where(sure, 0, NEEDS_PYTHON))
    return builder.value(item.fault)
