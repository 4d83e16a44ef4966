"""Points that are put in another order, or of which one is chosen, by a value of each."""

from collections.abc import Iterator
from operator import gt, lt
from typing import Any

import numpy as np

from nightwire.filters.language.vector.ragged import RaggedPoints, placed
from nightwire.filters.language.vector.values import (
    NEEDS_PYTHON,
    Array,
    FaultTable,
    TypedValues,
    Value,
    objects,
)

ORDERED = frozenset({"float", "npfloat", "int", "npint", "bool", "npbool"})


def in_order(ragged: RaggedPoints, item: Value, faults: FaultTable, *, backwards: bool) -> RaggedPoints:
    """Return each list as Python sorts it by *item*: equal ones stay as they were."""
    key = _key(ragged, item, backwards=backwards)
    kept = np.arange(len(ragged)) if key is None else np.lexsort((key, ragged.owners))
    failed = np.zeros(len(ragged.lengths), np.int32)
    for alert, points, values in _left_to_python(ragged, item, key):
        try:
            kept[points] = points[sorted(range(len(points)), key=values.__getitem__, reverse=backwards)]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this alert's fault
            failed[alert] = faults.of(error)
    return _of(ragged, ragged.offsets, kept, failed)


def best(ragged: RaggedPoints, item: Value, faults: FaultTable, *, largest: bool) -> RaggedPoints:
    """Return each list's point that ``max`` (or ``min``) finds by *item*; none of an empty list."""
    found = ragged.offsets[:-1].copy()
    key = _key(ragged, item, backwards=largest)
    filled = ragged.lengths > 0
    if key is not None and len(key):
        found[filled] = np.lexsort((key, ragged.owners))[ragged.offsets[:-1][filled]]
    failed = np.where(filled, 0, faults.of(_empty(largest=largest))).astype(np.int32)
    broken = ragged.faulty(item)
    for alert, points, values in _left_to_python(ragged, item, key):
        try:
            found[alert] = points[_first_best(values, None if broken is None else broken[points], largest)]
        except _FaultyError as error:
            failed[alert] = error.code
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this alert's fault
            failed[alert] = faults.of(error)
    offsets = np.concatenate([[0], np.cumsum(filled, dtype=np.int64)])
    return _of(ragged, offsets, found[filled], failed)


def nth(ragged: RaggedPoints, index: Value, faults: FaultTable) -> RaggedPoints:
    """Return each list's point number *index*, a value per alert."""
    size = len(ragged.lengths)
    found, there = ragged.offsets[:-1].copy(), np.zeros(size, bool)
    failed = np.full(size, NEEDS_PYTHON, np.int32)
    for typed in index.typed:
        if typed.kind in ("int", "npint"):
            where = typed.mask(size)
            place, inside = placed(ragged, np.broadcast_to(typed.values, size))
            found[where], there[where] = place[where], inside[where]
            failed[where] = 0
    failed[(failed == 0) & ~there] = faults.number("IndexError: list index out of range")
    if index.fault is not None:
        failed = np.where(index.fault, index.fault, failed)
    offsets = np.concatenate([[0], np.cumsum(there, dtype=np.int64)])
    return _of(ragged, offsets, found[there], failed)


def failure(ragged: RaggedPoints) -> Value:
    """Return nothing; the fault of alerts whose points could not be chosen."""
    if ragged.failed is None:
        return Value((TypedValues("none", None, None),))
    return Value((TypedValues("none", None, ragged.failed == 0),), ragged.failed)


class _FaultyError(Exception):
    """A value that has a fault is needed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _empty(*, largest: bool) -> ValueError:
    """Return what Python raises for the best of nothing."""
    try:
        (max if largest else min)([])
    except ValueError as error:
        return error
    raise AssertionError


def _of(ragged: RaggedPoints, offsets: Array, kept: Array, failed: Array) -> RaggedPoints:
    broken = None if ragged.broken is None else ragged.broken[kept]
    return RaggedPoints(offsets, kept, broken, failed=failed if failed.any() else None)


def _key(ragged: RaggedPoints, item: Value, *, backwards: bool) -> Array | None:
    """Return numbers that sort as *item* does, NaN apart; None where it is of several types."""
    typed_values = [typed for typed in item.typed if typed.kind in ORDERED]
    if len(typed_values) != 1:
        return None
    values = np.broadcast_to(np.asarray(typed_values[0].values), len(ragged))
    if values.dtype == bool:
        values = values.astype(np.int64)
    if not backwards:
        return values
    return ~values if values.dtype.kind == "i" else -values


def _left_to_python(
    ragged: RaggedPoints, item: Value, key: Array | None
) -> Iterator[tuple[int, Array, list[Any]]]:
    """Yield alerts that Python has to sort itself, each with its points and their values."""
    wanted = np.ones(len(ragged), bool)
    if key is not None:
        (typed,) = (typed for typed in item.typed if typed.kind in ORDERED)
        wanted = np.isnan(key) if key.dtype.kind == "f" else np.zeros(len(ragged), bool)
        if typed.where is not None:
            wanted |= ~typed.where
        if ragged.broken is not None:
            wanted |= ragged.broken != 0
    for alert in np.unique(ragged.owners[wanted]).tolist():
        points = np.arange(ragged.offsets[alert], ragged.offsets[alert + 1])
        yield alert, points, objects(item, points)


def _first_best(values: list[Any], broken: Array | None, largest: bool) -> int:
    """Return which of *values* ``max`` or ``min`` finds, asking for one after the other."""
    better = gt if largest else lt
    found = 0
    for at, value in enumerate(values):
        if broken is not None and broken[at]:
            raise _FaultyError(int(broken[at]))
        if at and better(value, values[found]):
            found = at
    return found
