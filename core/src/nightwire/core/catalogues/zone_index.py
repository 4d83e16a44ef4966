"""Objects on the sky by zones of declination: which of them lie near given positions.  Pure.

A zone is a band of declinations; within a zone objects lie by right ascension.  One number, the
*key*, holds both, so that a sorted array of them is the whole index: a window of right ascensions
in one zone is a slice of it, which two binary searches find.  Arrays may be maps of files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

STRIDE = 361.0
"""Keys of one zone after the other; more than 360, so that rounding never leads into the next."""

SLACK_DEG = 1e-9
"""By how much a window is larger than its disc: more than a key's rounding. [deg]"""

MOST_PAIRS = 1 << 20
"""Pairs of a position and an object that are compared at once."""

ARCSEC = 3600.0
"""Arcseconds of a degree."""


def zone_height(rows: int) -> float:
    """Return the height of zones for so many objects, so that windows hold few. [deg]"""
    return float(np.clip(1e8 / max(rows, 1), 0.05, 1.0))


def zone_keys(ra: Array, dec: Array, height: float) -> Array:
    """Return the keys of positions [deg] in zones of a *height*. [deg]"""
    found: Array = zones(dec, height) * STRIDE + ra
    return found


def zones(dec: Array, height: float) -> Array:
    """Return the zones of declinations; what lies beyond a pole has its zone."""
    last = np.ceil(180.0 / height) - 1
    found: Array = np.clip(np.floor((dec + 90.0) / height), 0.0, last)
    return found


def separations(ra: Array, dec: Array, other_ra: Array, other_dec: Array) -> Array:
    """Return the angles between positions [deg] and others [deg], by the haversine. [arcsec]"""
    ra, dec, other_ra, other_dec = (np.radians(one) for one in (ra, dec, other_ra, other_dec))
    up, along = np.sin((other_dec - dec) / 2), np.sin((other_ra - ra) / 2)
    square = up * up + np.cos(dec) * np.cos(other_dec) * along * along
    return np.degrees(2 * np.arcsin(np.sqrt(np.minimum(square, 1.0)))) * ARCSEC  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest objects of n positions.

    Attributes:
        row: Row of the nearest object; -1 where none is near.  int64, shape (n,).
        separation: Its distance; NaN where none is near. [arcsec]  float64, shape (n,).
        count: How many objects are near.  int64, shape (n,).
    """

    row: Array
    separation: Array
    count: Array


class ZoneIndex:
    """An index of objects.

    Args:
        keys: Their keys, ascending; float64, shape (n,).
        dec: Their declinations. [deg]  float64, shape (n,).
        height: Of the zones. [deg]
    """

    def __init__(self, keys: Array, dec: Array, height: float) -> None:
        self._keys, self._dec, self._height = keys, dec, height

    def nearest(self, ra: Array, dec: Array, radius: float) -> Nearest:
        """Return the nearest objects within *radius* of positions.

        Args:
            ra: Right ascensions [deg], shape (n,); NaN where there is no position.
            dec: Declinations. [deg]
            radius: Largest separation. [arcsec]
        """
        found = Nearest(np.full(len(ra), -1), np.full(len(ra), np.nan), np.zeros(len(ra), np.int64))
        known = np.flatnonzero(np.isfinite(ra) & (np.abs(dec) <= 90.0))
        position, low, high = self._windows(ra[known] % 360.0, dec[known], radius / ARCSEC)
        position = known[position]
        begin, end = np.searchsorted(self._keys, low), np.searchsorted(self._keys, high, "right")
        for part in _portions(end - begin):
            self._compare(position[part], begin[part], end[part], ra, dec, radius, found)
        return found

    def _windows(self, ra: Array, dec: Array, radius: float) -> tuple[Array, Array, Array]:
        """Return the windows in which discs lie: number of the disc, lowest and highest key.

        They are in the order of keys, by position: neighbours on the sky are read together.
        """
        half = _half_widths(dec, radius)
        first, last = (zones(dec + turn * (radius + SLACK_DEG), self._height) for turn in (-1, 1))
        position = np.repeat(np.arange(len(ra)), (last - first + 1).astype(np.int64))
        nth = np.arange(len(position)) - np.searchsorted(position, position)
        zone, centre, half = (first[position] + nth) * STRIDE, ra[position], half[position]
        turns = []
        for turn in (0.0, -360.0, 360.0):  # what reaches over the origin of right ascensions
            low, high = np.maximum(centre + turn - half, 0.0), np.minimum(centre + turn + half, 360.0)
            some = (low <= high) & ((half < 180.0) | (turn == 0.0))
            turns.append((position[some], (zone + low)[some], (zone + high)[some]))
        position, low, high = (np.concatenate(part) for part in zip(*turns, strict=True))
        order = np.argsort(low, kind="stable")
        return position[order], low[order], high[order]

    def _compare(
        self, position: Array, begin: Array, end: Array, ra: Array, dec: Array, radius: float, found: Nearest
    ) -> None:
        """Compare positions with the objects in rows *begin* to *end* - 1 of each."""
        rows = _ranges(begin, end)
        position = np.repeat(position, end - begin)
        apart = separations(ra[position], dec[position], np.mod(self._keys[rows], STRIDE), self._dec[rows])
        near = apart <= radius
        rows, position, apart = rows[near], position[near], apart[near]
        np.add.at(found.count, position, 1)
        order = np.lexsort((rows, apart, position))
        rows, position, apart = rows[order], position[order], apart[order]
        first = np.flatnonzero(np.diff(position, prepend=-1))
        rows, position, apart = rows[first], position[first], apart[first]
        best = ~(found.separation[position] <= apart)  # a NaN is never less
        found.row[position[best]], found.separation[position[best]] = rows[best], apart[best]


def _half_widths(dec: Array, radius: float) -> Array:
    """Return how far discs reach along right ascension to each side. [deg]"""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.sin(np.radians(radius)) / np.cos(np.radians(dec))
        half = np.degrees(np.arcsin(np.minimum(reach, 1.0))) * (1 + 1e-9) + SLACK_DEG
    return np.where((np.abs(dec) + radius < 90.0) & (reach < 1.0), half, 360.0)


def _ranges(begin: Array, end: Array) -> Array:
    """Return the numbers from each *begin* to its *end* - 1, one range after the other."""
    count = end - begin
    before = np.cumsum(count) - count
    found: Array = np.arange(int(count.sum())) + np.repeat(begin - before, count)
    return found


def _portions(pairs: Array) -> Iterator[slice]:
    """Yield slices of windows that hold so many *pairs* each; about `MOST_PAIRS` in a slice."""
    numbers = (np.cumsum(pairs) - pairs) // MOST_PAIRS
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(pairs)]
    for begin, end in pairwise(edges):
        if end > begin:
            yield slice(begin, end)
