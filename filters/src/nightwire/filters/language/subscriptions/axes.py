"""The cuts of many sets along one axis, of numbers or texts, and cells into which it is cut."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nightwire.filters.language.subscriptions.value_sets import LOWEST_NUMBER, LOWEST_TEXT, Cuts
from nightwire.filters.language.vector.values import EXACT, Array

MOST_CUTS = 252
"""Most cuts between the cells of an axis."""

LEAST_WHOLE, MOST_WHOLE = -(1 << 63), (1 << 63) - 1
Cells = tuple[int, int, int, int]


def extended(array: Array, length: int) -> Array:
    """Return *array* with room for *length* columns, at least; zeros in what is new."""
    if array.shape[-1] >= length:
        return array
    found = np.zeros((*array.shape[:-1], max(length, 2 * array.shape[-1])), array.dtype)
    found[..., : array.shape[-1]] = array
    return found


class Axis(ABC):
    """Sets, each under its slot, and cells: where one begins, *grid* has a value.

    A cut is kept as the first value behind it, its *start*.
    """

    def __init__(self, lowest: Any) -> None:
        self._lowest = lowest
        self._grid: list[Any] = []
        self._size = 0
        self._owners = np.zeros(16, np.int32)
        self._first, self._count = np.zeros((2, 64), np.int32)

    def __len__(self) -> int:
        return self._size

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self._grid) + 1

    def add(self, slots: Sequence[int], several: Sequence[Cuts]) -> None:
        """Add sets, none of them empty."""
        counts = np.fromiter(map(len, several), np.int32, len(several))
        begin, self._size = self._size, self._size + int(counts.sum())
        self._owners = extended(self._owners, self._size)
        self._owners[begin : self._size] = np.repeat(np.asarray(slots, np.int32), counts)
        self._first, self._count = (extended(one, max(slots) + 1) for one in (self._first, self._count))
        self._first[slots], self._count[slots] = begin + np.cumsum(counts) - counts, counts
        self._append([cut for cuts in several for cut in cuts], begin)

    def remove(self, slot: int) -> None:
        """Forget a set; its cuts stay until `cut`."""
        if slot < len(self._count):
            begin = self._first[slot]
            self._owners[begin : begin + self._count[slot]] = -1
            self._count[slot] = 0

    def cut(self) -> None:
        """Drop the cuts of sets that were removed, and make cells anew."""
        kept = np.flatnonzero(self._owners[: self._size] >= 0)
        self._owners, self._size = self._owners[kept], len(kept)
        slots, first = np.unique(self._owners, return_index=True)
        self._first[slots] = first
        ends = sorted(one for one in self._keep(kept) if one != self._lowest)
        different = sorted({*ends})
        if len(different) > MOST_CUTS:
            places = np.linspace(0, len(ends) - 1, MOST_CUTS).astype(np.int64)
            different = sorted({ends[at] for at in places.tolist()})
        self._set_grid(different)

    def cells_of_set(self, cuts: Cuts) -> list[Cells]:
        """Return, for each interval, the first and last cell that it touches, and within it."""
        return [self._cells(*one) for one in _intervals([*map(self._start, cuts)])]

    def cells_of_all(self) -> Array:
        """Return the same of all intervals, and first their slots; shape (5, n)."""
        starts, found = self._keep(np.arange(self._size)), list[tuple[int, ...]]()
        for slot in np.unique(self._owners[: self._size]).tolist():
            own = starts[self._first[slot] : self._first[slot] + self._count[slot]]
            found.extend((slot, *self._cells(*one)) for one in _intervals(own))
        return np.array(found, np.int64).reshape(-1, 5).T

    def _cells(self, begin: Any, end: Any) -> Cells:
        grid, first = self._grid, self._before(begin)
        sure = 0 if begin == self._lowest else bisect_left(grid, begin) + 1
        if end is None:
            return bisect_right(grid, first), len(grid), sure, len(grid)
        return (
            bisect_right(grid, first),
            bisect_left(grid, end),
            sure,
            bisect_right(grid, self._before(end)) - 1,
        )

    def _set_grid(self, grid: list[Any]) -> None:
        self._grid = grid

    def _start(self, cut: Any) -> Any:
        return cut

    def _before(self, start: Any) -> Any:
        """Return a start of which no value behind its cut lies before."""
        return start

    @abstractmethod
    def _append(self, cuts: Sequence[Any], begin: int) -> None:
        """Keep the starts of *cuts*, the first of them at *begin*."""

    @abstractmethod
    def _keep(self, kept: Array) -> list[Any]:
        """Keep some of the cuts; return their starts."""


def _intervals(starts: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield where each interval begins, and where it ends: None if it does not."""
    return zip(starts[::2], [*starts[1::2], None], strict=False)


class NumberAxis(Axis):
    """Sets of numbers.  A cut has two starts: a float, and the whole number before it.

    Beyond 2**53 there are whole numbers between two floats, for which cells are taken wider.
    """

    def __init__(self) -> None:
        super().__init__(LOWEST_NUMBER[0])
        self._starts, self._wholes = np.zeros(16), np.zeros(16, np.int64)
        self._limits = np.zeros(0)

    def cells_of(self, values: Array) -> Array:
        """Return the cells of floats, or of whole numbers rounded down to floats."""
        return np.asarray(np.searchsorted(self._limits, values, side="right"))

    def contains(self, slots: Array, values: Array, wholes: Array, wide: Array) -> Array:
        """Return whether sets have the values: *wholes* where *wide*, else floats."""
        found = self._contains(slots, lambda at, rows: self._starts[at] <= values[rows])
        if wide.any():
            within = self._contains(slots, lambda at, rows: self._wholes[at] < wholes[rows])
            return np.where(wide, within, found)
        return found

    def _contains(self, slots: Array, reached: Callable[[Array, Array], Array]) -> Array:
        """Return whether an odd number of the set's cuts is *reached*."""
        first, left = self._first[slots], self._count[slots]
        at, rows = first.copy(), np.arange(len(slots))
        while len(rows := rows[left[rows] > 0]):
            half = left[rows] // 2
            true = reached(at[rows] + half, rows)
            at[rows] += np.where(true, half + 1, 0)
            left[rows] = np.where(true, left[rows] - half - 1, half)
        return np.asarray((at - first) % 2 == 1)

    def _set_grid(self, grid: list[Any]) -> None:
        self._grid, self._limits = grid, np.array(grid, float)

    def _start(self, cut: tuple[float, bool]) -> float:
        found = float(cut[0])
        return math.nextafter(found, math.inf) if (found, False) < cut else found

    def _before(self, start: float) -> float:
        return start if abs(start) < EXACT or math.isinf(start) else math.nextafter(start, -math.inf)

    def _append(self, cuts: Sequence[Any], begin: int) -> None:
        self._starts, self._wholes = extended(self._starts, self._size), extended(self._wholes, self._size)
        self._starts[begin : self._size] = [*map(self._start, cuts)]
        self._wholes[begin : self._size] = [*map(_whole_before, cuts)]

    def _keep(self, kept: Array) -> list[float]:
        self._starts, self._wholes = self._starts[kept], self._wholes[kept]
        return self._starts.tolist()


def _whole_before(cut: tuple[float, bool]) -> int:
    """Return the last whole number of 64 bits before *cut*; the least if there is none."""
    number, after = cut
    if not LEAST_WHOLE < number <= MOST_WHOLE:
        return LEAST_WHOLE if number < 0 else MOST_WHOLE
    found = math.ceil(number)
    return found if after and found == number else found - 1


class TextAxis(Axis):
    """Sets of texts."""

    def __init__(self) -> None:
        super().__init__(LOWEST_TEXT)
        self._starts: list[str] = []

    def cells_of(self, values: Sequence[str]) -> Array:
        """Return the cells of texts."""
        known = {one: bisect_right(self._grid, one) for one in {*values}}
        return np.fromiter(map(known.__getitem__, values), np.int64, len(values))

    def contains(self, slots: Array, values: Sequence[str]) -> Array:
        """Return whether sets have the values."""
        given = zip(values, self._first[slots].tolist(), self._count[slots].tolist(), strict=True)
        found = [bisect_right(self._starts, one, at, at + count) - at for one, at, count in given]
        return np.array([one % 2 == 1 for one in found], bool)

    def _append(self, cuts: Sequence[Any], begin: int) -> None:
        self._starts.extend(cuts)

    def _keep(self, kept: Array) -> list[str]:
        self._starts = [self._starts[at] for at in kept.tolist()]
        return self._starts
