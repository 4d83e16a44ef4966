"""Bitmaps of one term: for each cell of its values, who refuses it, and who has to be asked."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nightwire.filters.language.subscriptions.axes import (
    LEAST_WHOLE,
    Axis,
    NumberAxis,
    TextAxis,
    extended,
)
from nightwire.filters.language.subscriptions.value_sets import ValueSet
from nightwire.filters.language.vector.values import EXACT, Array, TypedValues, Value, python

NULL, FAULT = -2, -1
"""Rows of alerts without a value, and of those whose term has a fault."""


class Places(NamedTuple):
    """Where the values of n alerts lie.

    Attributes:
        rows: Rows of the bitmaps, shape (n,).
        floats: Numbers, rounded down.
        wholes: Whole numbers.
        wide: Where a number is one of *wholes* that no float is.
        texts: Texts; shape (0,) if there is none.
    """

    rows: Array
    floats: Array
    wholes: Array
    wide: Array
    texts: Array


class TermBitmaps:
    """Who passes which values of a term.

    The rows are the cells of numbers, those of texts, NULL, and a fault.  *refused* has the bit of
    each set that has nothing of a row, *unsure* of each that has a part of it.

    Args:
        width: Bytes of a row.
    """

    def __init__(self, width: int) -> None:
        self._numbers, self._texts = NumberAxis(), TextAxis()
        self.refused = np.zeros((4, width), np.uint8)
        self.unsure = np.zeros((4, width), np.uint8)
        self.exact = True
        self._cut_at = 32

    @property
    def constrained(self) -> Array:
        """Who wants anything of the term."""
        return np.asarray(self.refused[FAULT])

    def widen(self, width: int) -> None:
        """Make rows of *width* bytes at least."""
        self.refused, self.unsure = extended(self.refused, width), extended(self.unsure, width)

    def add(self, slot: int, some: ValueSet) -> None:
        """Add one set."""
        self._add([slot], [some])
        refused, unsure = self.pattern(some)
        at, bit = slot >> 3, np.uint8(1 << (slot & 7))
        self.refused[refused, at] |= bit
        if len(self._numbers) + len(self._texts) > 2 * self._cut_at:
            self.cut()
        elif unsure.any():
            self.unsure[unsure, at] |= bit
            self.exact = False

    def add_many(self, slots: Sequence[int], sets: Sequence[ValueSet]) -> None:
        """Add many sets, and cut the axes anew."""
        self._add(slots, sets)
        null = [slot for slot, one in zip(slots, sets, strict=True) if one.null]
        mark(self.refused[FAULT], slots)
        mark(self.refused[NULL], [*{*slots}.difference(null)])
        self.cut()

    def remove(self, slot: int) -> None:
        """Forget the set of a slot."""
        at, others = slot >> 3, np.uint8(~(1 << (slot & 7)) & 0xFF)
        self.refused[:, at] &= others
        self.unsure[:, at] &= others
        self._numbers.remove(slot)
        self._texts.remove(slot)

    def pattern(self, some: ValueSet) -> tuple[Array, Array]:
        """Return which rows a set refuses, and of which it has a part."""
        passed, sure = np.zeros((2, len(self.refused)), bool)
        for axis, cuts, begin in (
            (self._numbers, some.numbers, 0),
            (self._texts, some.texts, self._numbers.cells),
        ):
            for first, last, sure_first, sure_last in axis.cells_of_set(cuts):
                passed[begin + first : begin + last + 1] = True
                sure[begin + sure_first : begin + sure_last + 1] = True
        passed[NULL] = sure[NULL] = some.null
        return ~passed, passed & ~sure

    def places(self, value: Value, size: int) -> Places:
        """Return where the values of *size* alerts lie."""
        floats, wholes = np.zeros(size), np.zeros(size, np.int64)
        rows, wide = np.full(size, len(self.refused) + FAULT), np.zeros(size, bool)
        texts = np.zeros(0, object)
        for typed in value.typed:
            where = typed.mask(size)
            if typed.kind == "none":
                rows[where] = len(self.refused) + NULL
            elif typed.kind == "str":
                found = python(typed, np.flatnonzero(where))
                texts = np.zeros(size, object)
                texts[where] = found
                rows[where] = self._numbers.cells + self._texts.cells_of(found)
            else:
                _numbers_of(typed, where, (floats, wholes, wide))
                rows[where] = self._numbers.cells_of(floats[where])
        return Places(rows, floats, wholes, wide, texts)

    def contains(self, slots: Array, alerts: Array, places: Places) -> Array:
        """Return whether the sets of *slots* have the values of *alerts*."""
        found = np.empty(len(slots), bool)
        text = places.rows[alerts] >= self._numbers.cells
        if text.any():
            found[text] = self._texts.contains(slots[text], places.texts[alerts[text]].tolist())
            slots, alerts = slots[~text], alerts[~text]
        values = (places.floats[alerts], places.wholes[alerts], places.wide[alerts])
        found[~text] = self._numbers.contains(slots, *values)
        return found

    def cut(self) -> None:
        """Cut the axes anew, and fill all rows."""
        wanting = np.unpackbits(self.constrained, bitorder="little").view(bool)
        for axis in (self._numbers, self._texts):
            axis.cut()
        cells = self._numbers.cells + self._texts.cells
        kept = self.refused[NULL:]
        self.refused, self.unsure = np.zeros((2, cells + 2, len(self.constrained)), np.uint8)
        self.refused[NULL:] = kept
        self._fill(self._numbers, wanting, 0)
        self._fill(self._texts, wanting, self._numbers.cells)
        self._cut_at = max(32, len(self._numbers) + len(self._texts))
        self.exact = not self.unsure.any()

    def _add(self, slots: Sequence[int], sets: Sequence[ValueSet]) -> None:
        both = [*zip(slots, sets, strict=True)]
        for axis, of in ((self._numbers, "numbers"), (self._texts, "texts")):
            if some := [(slot, cuts) for slot, one in both if (cuts := getattr(one, of))]:
                axis.add(*map(list, zip(*some, strict=True)))

    def _fill(self, axis: Axis, wanting: Array, begin: int) -> None:
        slots, first, last, sure_first, sure_last = axis.cells_of_all()
        for cell in range(axis.cells):
            passed, sure = np.zeros((2, len(wanting)), bool)
            passed[slots[(first <= cell) & (cell <= last)]] = True
            sure[slots[(sure_first <= cell) & (cell <= sure_last)]] = True
            self.refused[begin + cell] = np.packbits(wanting & ~passed, bitorder="little")
            self.unsure[begin + cell] = np.packbits(passed & ~sure, bitorder="little")


def mark(row: Array, slots: Sequence[int]) -> None:
    """Set the bits of *slots* in a row."""
    found = np.zeros(8 * len(row), bool)
    found[slots] = True
    row |= np.packbits(found, bitorder="little")


def _numbers_of(typed: TypedValues, where: Array, into: tuple[Array, Array, Array]) -> None:
    """Put numbers where they belong: floats, and whole ones that are rounded down to floats."""
    floats, wholes, wide = into
    values = np.broadcast_to(typed.values, len(where))[where]
    if values.dtype.kind == "i":
        wholes[where] = values
        wide[where] = (np.abs(values) > EXACT) & (values != LEAST_WHOLE)
        rounded = values.astype(float)
        above = (rounded >= 2.0**63) | (rounded.astype(np.int64, casting="unsafe") > values)
        values = np.where(above, np.nextafter(rounded, -np.inf), rounded)
    floats[where] = values
