"""An index of many normal forms: who passes alerts, and who covers whom."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nightwire.filters.language.subscriptions.axes import extended
from nightwire.filters.language.subscriptions.bitmaps import Places, TermBitmaps, mark
from nightwire.filters.language.subscriptions.forms import NormalForm
from nightwire.filters.language.subscriptions.terms import Term
from nightwire.filters.language.subscriptions.value_sets import ValueSet
from nightwire.filters.language.vector.run import Run
from nightwire.filters.language.vector.values import Array

CHUNK = 1 << 20
"""Size of the bitmaps of alerts that are judged at once. [byte]"""


class FormIndex:
    """Normal forms, each in a slot, whose bit stands for it."""

    def __init__(self) -> None:
        self._alive = np.zeros(64, np.uint8)
        self._terms: dict[Term, TermBitmaps] = {}
        self._free: list[int] = []
        self._slots = 0

    @property
    def terms(self) -> Sequence[Term]:
        """What the forms ask about."""
        return [*self._terms]

    def slot(self) -> int:
        """Return a free slot, in which nothing passes yet."""
        if self._free:
            return self._free.pop()
        self._slots += 1
        self._widen()
        return self._slots - 1

    def add(self, form: NormalForm) -> int:
        """Add a form; return its slot."""
        slot = self.slot()
        for term, some in form.sets.items():
            self._bitmaps(term).add(slot, some)
        self._alive[slot >> 3] |= (not form.empty) << (slot & 7)
        return slot

    def add_many(self, forms: Iterable[NormalForm]) -> range:
        """Add many forms to new slots; return these."""
        begin, by_term, alive = self._slots, dict[Term, tuple[list[int], list[ValueSet]]](), list[int]()
        for slot, form in enumerate(forms, begin):
            self._slots = slot + 1
            if not form.empty:
                alive.append(slot)
            for term, some in form.sets.items():
                slots, sets = by_term.setdefault(term, ([], []))
                slots.append(slot)
                sets.append(some)
        self._widen()
        mark(self._alive, alive)
        for term, (slots, sets) in by_term.items():
            self._bitmaps(term).add_many(slots, sets)
        return range(begin, self._slots)

    def remove(self, slot: int) -> None:
        """Remove the form in a slot, which is free then."""
        at, bit = slot >> 3, 1 << (slot & 7)
        self._alive[at] &= ~bit & 0xFF
        for bitmaps in self._terms.values():
            if bitmaps.constrained[at] & bit:
                bitmaps.remove(slot)
        self._free.append(slot)

    def passed(self, run: Run) -> Iterator[tuple[int, Array]]:
        """Yield the first of some alerts of a table, and bitmaps of who passes them."""
        places = {term: one.places(term.values(run), run.size) for term, one in self._terms.items()}
        step = max(1, CHUNK // len(self._alive))
        for begin in range(0, run.size, step):
            yield begin, self._passed(begin, min(begin + step, run.size), places)

    def covering(self, form: NormalForm) -> Sequence[int]:
        """Return who may cover *form*, in any case all that do."""
        refused = ~self._alive
        for term, bitmaps in self._terms.items():
            if term in form.sets:
                refuses, _ = bitmaps.pattern(form.sets[term])
                refused |= np.bitwise_or.reduce(bitmaps.refused[:-1][~refuses[:-1]], axis=0)
            else:
                refused |= bitmaps.constrained
        return list(map(int, slots_in(~refused)))

    def covered(self, form: NormalForm) -> Sequence[int]:
        """Return whom *form* may cover, in any case all whom it does."""
        found = self._alive.copy()
        for term, some in form.sets.items():
            if term not in self._terms:
                return []
            bitmaps = self._terms[term]
            refuses, _ = bitmaps.pattern(some)
            found &= np.bitwise_and.reduce(bitmaps.refused[refuses], axis=0)
        return list(map(int, slots_in(found)))

    def _bitmaps(self, term: Term) -> TermBitmaps:
        if term not in self._terms:
            self._terms[term] = TermBitmaps(len(self._alive))
        return self._terms[term]

    def _widen(self) -> None:
        if self._slots > 8 * len(self._alive):
            self._alive = extended(self._alive, -(-self._slots // 64) * 8)
            for bitmaps in self._terms.values():
                bitmaps.widen(len(self._alive))

    def _passed(self, begin: int, end: int, places: dict[Term, Places]) -> Array:
        refused = np.tile(~self._alive, (end - begin, 1))
        unsure, room = np.zeros_like(refused), np.empty_like(refused)
        for term, bitmaps in self._terms.items():
            rows = places[term].rows[begin:end]
            refused |= np.take(bitmaps.refused, rows, axis=0, out=room, mode="clip")
            if not bitmaps.exact:
                unsure |= np.take(bitmaps.unsure, rows, axis=0, out=room, mode="clip")
        np.invert(refused, out=refused)
        unsure &= refused
        self._ask(refused, unsure, begin, places)
        return refused

    def _ask(self, passed: Array, unsure: Array, begin: int, places: dict[Term, Places]) -> None:
        """Take out of *passed* who is *unsure* and, when asked, does not pass."""
        found = slots_in(unsure.reshape(-1))
        alerts, slots = np.divmod(found, 8 * passed.shape[1])
        bits = np.left_shift(1, slots & 7).astype(np.uint8)
        wrong = np.zeros(len(found), bool)
        for term, bitmaps in self._terms.items():
            if bitmaps.exact:
                continue
            rows = places[term].rows[alerts + begin]
            asked = np.flatnonzero(bitmaps.unsure[rows, slots >> 3] & bits)
            wrong[asked] |= ~bitmaps.contains(slots[asked], alerts[asked] + begin, places[term])
        np.bitwise_xor.at(passed, (alerts[wrong], slots[wrong] >> 3), bits[wrong])


def slots_in(bitmap: Array) -> Array:
    """Return the numbers of the bits that are set, in their order."""
    there = np.flatnonzero(bitmap != 0)
    at = np.flatnonzero(np.unpackbits(bitmap[there], bitorder="little").view(bool))
    return np.asarray((there[at >> 3] << 3) + (at & 7))
