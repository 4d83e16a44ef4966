"""Intervals of many sets along one axis, numbers or texts, and cells into which it is cut.

Each set has the intervals ``first[slot]`` and after, ``count[slot]`` of them, in their order.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from nightwire.filters.language.subscriptions.value_sets import LOWEST_TEXT, Cuts
from nightwire.filters.language.vector.values import EXACT, Array

MOST_CUTS = 252
"""Most cuts of an axis."""

LEAST_WHOLE, MOST_WHOLE = -(1 << 63), (1 << 63) - 1


def extended(array: Array, length: int) -> Array:
    """Return *array* with room for *length* columns, at least; zeros in what is new."""
    if array.shape[-1] >= length:
        return array
    found = np.zeros((*array.shape[:-1], max(length, 2 * array.shape[-1])), array.dtype)
    found[..., : array.shape[-1]] = array
    return found


def spans(cuts: Cuts) -> Sequence[tuple[Any, Any]]:
    """Return where each interval begins and ends; None for an end that there is not."""
    return [*zip(cuts[::2], [*cuts[1::2], None][: (len(cuts) + 1) // 2], strict=True)]


class Axis:
    """The intervals of sets, each under its slot."""

    def __init__(self) -> None:
        self.owners = np.zeros(16, np.int32)
        self.size = 0
        self.first = np.zeros(64, np.int32)
        self.count = np.zeros(64, np.int32)

    def add(self, slots: Sequence[int], several: Sequence[Cuts]) -> None:
        """Add sets, none of them empty."""
        counts = np.array([(len(cuts) + 1) // 2 for cuts in several], np.int32)
        begin, self.size = self.size, self.size + int(counts.sum())
        self.owners = extended(self.owners, self.size)
        self.owners[begin : self.size] = np.repeat(np.asarray(slots, np.int32), counts)
        self.first, self.count = (extended(one, max(slots) + 1) for one in (self.first, self.count))
        self.first[slots], self.count[slots] = begin + np.cumsum(counts) - counts, counts
        self._append(several, begin)

    def remove(self, slot: int) -> None:
        """Forget a set; its intervals stay until `compact`."""
        if slot < len(self.count) and self.count[slot]:
            begin = self.first[slot]
            self.owners[begin : begin + self.count[slot]] = -1
            self.count[slot] = 0

    def compact(self) -> None:
        """Drop the intervals of sets that were removed, and cut the axis anew."""
        kept = np.flatnonzero(self.owners[: self.size] >= 0)
        self._keep(kept)
        self.owners, self.size = self.owners[kept], len(kept)
        slots, first = np.unique(self.owners, return_index=True)
        self.first[slots] = first
        self._cut()

    @property
    def cells(self) -> int:
        """How many cells there are."""
        raise NotImplementedError

    def cells_of_set(self, cuts: Cuts) -> Sequence[tuple[int, int, int, int]]:
        """Return, for each interval, the first and last cell that it touches, and within it."""
        raise NotImplementedError

    def cells_of_all(self) -> Array:
        """Return the same of all intervals that there are, shape (4, n)."""
        raise NotImplementedError

    def _append(self, several: Sequence[Cuts], begin: int) -> None:
        raise NotImplementedError

    def _keep(self, kept: Array) -> None:
        raise NotImplementedError

    def _cut(self) -> None:
        raise NotImplementedError


def _cuts_of(ends: Array) -> Array:
    """Return so many cuts at most, all *ends* if they are few, else each as far as others."""
    different = np.unique(ends)
    if len(different) <= MOST_CUTS:
        return different
    ends = np.sort(ends)
    return np.unique(ends[np.linspace(0, len(ends) - 1, MOST_CUTS).astype(np.int64)])


class NumberAxis(Axis):
    """Intervals of numbers, as closed ones of floats and of whole numbers.

    Beyond 2**53 floats are sparser than whole numbers; cells are taken one float wider there, and
    nothing is sure about the outermost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._floats = np.zeros((2, 16))
        self._wholes = np.zeros((2, 16), np.int64)
        self._set_cuts(np.zeros(0))

    @property
    def cells(self) -> int:
        return len(self._cuts) + 1

    def cells_of(self, values: Array) -> Array:
        """Return the cells of floats, or of whole numbers rounded down to floats."""
        return np.asarray(np.searchsorted(self._cuts, values, side="right"))

    def cells_of_set(self, cuts: Cuts) -> Sequence[tuple[int, int, int, int]]:
        return [self._cells(*_closed_floats(*one)) for one in spans(cuts)]

    def _cells(self, low: float, high: float) -> tuple[int, int, int, int]:
        outer_low, inner_low = _around(low, -math.inf)
        outer_high, inner_high = _around(high, math.inf)
        return (
            bisect_right(self._list, outer_low),
            bisect_right(self._list, outer_high),
            0 if low == -math.inf else bisect_left(self._list, inner_low) + 1,
            bisect_right(self._ends, inner_high) - 1,
        )

    def cells_of_all(self) -> Array:
        low, high = self._floats[:, : self.size]
        wide_low, wide_high = (np.isfinite(one) & (np.abs(one) >= EXACT) for one in (low, high))
        inner_low = np.where(wide_low, _beside(low, np.inf), low)
        inner_high = np.where(wide_high, _beside(high, -np.inf), high)
        sure = np.searchsorted(self._cuts, inner_low, side="left") + 1
        return np.stack(
            [
                self.cells_of(np.where(wide_low, _beside(low, -np.inf), low)),
                self.cells_of(np.where(wide_high, _beside(high, np.inf), high)),
                np.where(low == -np.inf, 0, sure),
                np.searchsorted(self._ends, inner_high, side="right") - 1,
            ]
        )

    def contains(self, slots: Array, values: Array, wholes: Array, wide: Array) -> Array:
        """Return whether sets have the values: *wholes* where *wide*, else floats."""
        found = np.empty(len(slots), bool)
        for some, given, bounds in ((~wide, values, self._floats), (wide, wholes, self._wholes)):
            if some.any():
                found[some] = self._contains(slots[some], given[some], bounds)
        return found

    def _contains(self, slots: Array, values: Array, bounds: Array) -> Array:
        at, left = self.first[slots], self.count[slots]
        there = left > 0
        while (left > 1).any():  # towards the last interval that begins at the value or before it
            half = left // 2
            later = (left > 1) & (bounds[0][at + half] <= values)
            at = np.where(later, at + half, at)
            left = np.where(later, left - half, np.maximum(half, np.minimum(left, 1)))
        return there & (bounds[0][at] <= values) & (values <= bounds[1][at])

    def _append(self, several: Sequence[Cuts], begin: int) -> None:
        self._floats, self._wholes = extended(self._floats, self.size), extended(self._wholes, self.size)
        self._floats[:, begin : self.size] = _floats([one for cuts in several for one in spans(cuts)])
        wholes = [one for cuts in several for one in _wholes(cuts)]
        self._wholes[:, begin : self.size] = np.array(wholes, np.int64).reshape(-1, 2).T

    def _keep(self, kept: Array) -> None:
        self._floats, self._wholes = self._floats[:, kept], self._wholes[:, kept]

    def _cut(self) -> None:
        low, high = self._floats[:, : self.size]
        low, high = low[low > -np.inf], high[high < np.inf]
        self._set_cuts(_cuts_of(np.concatenate([low, _beside(high, np.inf)])))

    def _set_cuts(self, cuts: Array) -> None:
        self._cuts, self._list = cuts, cuts.tolist()
        self._ends = [*_beside(cuts, -np.inf).tolist(), math.inf]


def _around(end: float, outwards: float) -> tuple[float, float]:
    """Return an end as far out as whole numbers beside it may lie, and as far in."""
    if abs(end) < EXACT or math.isinf(end):
        return end, end
    return math.nextafter(end, outwards), math.nextafter(end, -outwards)


def _beside(floats: Array, towards: float) -> Array:
    """Return the floats next to these."""
    with np.errstate(all="ignore"):
        return np.nextafter(floats, towards)


def _floats(several: Sequence[tuple[Any, Any]]) -> Array:
    """Return the smallest and the largest floats of intervals, shape (2, n)."""
    return np.array([_closed_floats(*one) for one in several]).reshape(-1, 2).T


def _closed_floats(begin: tuple[float, bool], end: tuple[float, bool] | None) -> tuple[float, float]:
    """Return the smallest and the largest float between two cuts."""
    low = float(begin[0])
    if (low, False) < begin:
        low = math.nextafter(low, math.inf)
    if end is None:
        return low, math.inf
    high = float(end[0])
    return low, high if (high, False) < end else math.nextafter(high, -math.inf)


def _wholes(cuts: Cuts) -> list[tuple[int, int]]:
    """Return the smallest and the largest whole numbers of 64 bits of as many intervals.

    Where no such number lies in the last ones, those before them stand there again.
    """
    near = spans(tuple(cut for cut in cuts if cut < (MOST_WHOLE, True)))
    found = [
        (_whole(begin), MOST_WHOLE if end is None else max(_whole(end) - 1, LEAST_WHOLE))
        for begin, end in near
    ] or [(MOST_WHOLE, LEAST_WHOLE)]
    return found + found[-1:] * ((len(cuts) + 1) // 2 - len(found))


def _whole(cut: tuple[float, bool]) -> int:
    """Return the first whole number behind *cut*."""
    number, after = cut
    if number < LEAST_WHOLE:
        return LEAST_WHOLE
    found = math.ceil(number)
    return found + (after and found == number)


class TextAxis(Axis):
    """Intervals of texts."""

    def __init__(self) -> None:
        super().__init__()
        self._lows: list[str] = []
        self._highs: list[str | None] = []
        self._cuts: list[str] = []

    @property
    def cells(self) -> int:
        return len(self._cuts) + 1

    def cells_of(self, values: Sequence[str]) -> Array:
        """Return the cells of texts."""
        known = {one: bisect_right(self._cuts, one) for one in set(values)}
        return np.fromiter(map(known.__getitem__, values), np.int64, len(values))

    def cells_of_set(self, cuts: Cuts) -> Sequence[tuple[int, int, int, int]]:
        return [self._passed(low, high) for low, high in spans(cuts)]

    def cells_of_all(self) -> Array:
        found = [self._passed(low, high) for low, high in zip(self._lows, self._highs, strict=True)]
        return np.array(found, np.int64).reshape(-1, 4).T

    def _passed(self, low: str, high: str | None) -> tuple[int, int, int, int]:
        cuts = self._cuts
        sure_first = 0 if low == LOWEST_TEXT else bisect_left(cuts, low) + 1
        if high is None:
            return bisect_right(cuts, low), len(cuts), sure_first, len(cuts)
        return bisect_right(cuts, low), bisect_left(cuts, high), sure_first, bisect_right(cuts, high) - 1

    def contains(self, slots: Array, values: Sequence[str]) -> Array:
        """Return whether the sets of *slots* have the values."""
        firsts, counts = self.first[slots].tolist(), self.count[slots].tolist()
        given = zip(values, firsts, counts, strict=True)
        return np.fromiter((self._contains(*one) for one in given), bool, len(slots))

    def _contains(self, value: str, first: int, count: int) -> bool:
        at = bisect_right(self._lows, value, first, first + count) - 1
        high = self._highs[at]
        return at >= first and (high is None or value < high)

    def _append(self, several: Sequence[Cuts], begin: int) -> None:
        for cuts in several:
            self._lows.extend(low for low, _ in spans(cuts))
            self._highs.extend(high for _, high in spans(cuts))

    def _keep(self, kept: Array) -> None:
        self._lows = [self._lows[at] for at in kept.tolist()]
        self._highs = [self._highs[at] for at in kept.tolist()]

    def _cut(self) -> None:
        ends = [one for one in (*self._lows, *self._highs) if one]
        self._cuts = _cuts_of(np.array(ends, object)).tolist() if ends else []
