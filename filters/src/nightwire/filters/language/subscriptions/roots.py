"""The covering root set: the subscriptions that no other covers, and whom each of them covers."""

from collections.abc import Hashable, Iterator
from itertools import count
from typing import Any

from nightwire.filters.language.program import Program
from nightwire.filters.language.subscriptions.forms import NormalForm, reduced
from nightwire.filters.language.subscriptions.index import FormIndex
from nightwire.filters.language.subscriptions.relations import covers
from nightwire.filters.language.subscriptions.terms import term_of


class Roots:
    """Subscriptions, each under a key, and for each its root, which covers it; one's own for roots.

    A root is covered by no other; of several that are the same, the one that is longest there is
    the root.  A condition without a normal form is covered by TRUE, and by its own text.
    """

    def __init__(self) -> None:
        self._index = FormIndex()
        self._turn = count()
        self._turns: dict[Any, int] = {}
        self._forms: dict[Any, NormalForm] = {}
        self._others: dict[Any, str] = {}
        self._root: dict[Any, Any] = {}
        self._covered: dict[Any, dict[Any, None]] = {}
        self._slots: dict[Any, int] = {}
        self._keys: dict[int, Any] = {}
        self._texts: dict[str | None, Any] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._covered)

    def root_of(self, key: Hashable) -> Any:
        """Return the root of a subscription, itself if it is one.

        Raises:
            KeyError: There is none of this key.
        """
        return self._root[key]

    def covered_by(self, root: Hashable) -> list[Any]:
        """Return the keys of those that have this *root*, itself not among them.

        Raises:
            KeyError: There is no such root.
        """
        return [*self._covered[root]]

    def insert(self, key: Hashable, condition: Program | NormalForm) -> None:
        """Add a subscription.

        Raises:
            KeyError: There is one of this key.
        """
        if key in self._turns:
            raise KeyError(f"there is a subscription {key!r} already; remove it first")
        found = reduced(condition)
        if isinstance(found, NormalForm):
            self._forms[key] = found
        else:
            self._others[key] = term_of(found.nodes, len(found.nodes) - 1).text
        self._turns[key] = next(self._turn)
        self._place(key)

    def remove(self, key: Hashable) -> None:
        """Remove a subscription; those whose root it was find another, or are roots.

        Raises:
            KeyError: There is none of this key.
        """
        root = self._root.pop(key)
        if root != key:
            del self._covered[root][key]
        else:
            for one in sorted(self._uproot(key), key=self._turns.__getitem__):
                self._place(one)
        for known in (self._turns, self._forms, self._others):
            known.pop(key, None)

    def _place(self, key: Any) -> None:
        root = self._coverer(key)
        if root is not None:
            self._root[key] = root
            self._covered[root][key] = None
            return
        moved = [one for below in self._below(key) for one in (below, *self._uproot(below))]
        self._plant(key)
        self._covered[key] = dict.fromkeys(moved)
        self._root.update(dict.fromkeys([key, *moved], key))

    def _coverer(self, key: Any) -> Any:
        """Return the oldest root that covers a subscription; None if none does."""
        form = self._forms.get(key, NormalForm())  # TRUE alone covers what has none
        if (text := self._others.get(key)) in self._texts:
            return self._texts[text]
        if form.empty:
            return next(iter(self._covered), None)
        known = [self._keys[slot] for slot in self._index.covering(form)]
        found = [one for one in known if covers(self._forms[one], form)]
        return min(found, key=self._turns.__getitem__, default=None)

    def _below(self, key: Any) -> list[Any]:
        """Return the roots that a subscription covers which none of them covers."""
        form = self._forms.get(key)
        if form is not None and form.empty:
            return []
        if len(self._covered) == 1:
            (only,) = self._covered
            if only in self._forms and self._forms[only].empty:
                return [only]
        if form is None:
            return []
        found = [self._keys[slot] for slot in self._index.covered(form)]
        found = [one for one in found if covers(form, self._forms[one])]
        return found if form.sets else [*found, *self._texts.values()]

    def _plant(self, key: Any) -> None:
        if key in self._others:
            self._texts[self._others[key]] = key
        else:
            self._slots[key] = slot = self._index.add(self._forms[key])
            self._keys[slot] = key

    def _uproot(self, key: Any) -> list[Any]:
        """Make a root one no more; return those whose root it was."""
        if key in self._others:
            del self._texts[self._others[key]]
        else:
            slot = self._slots.pop(key)
            self._index.remove(slot)
            del self._keys[slot]
        return [*self._covered.pop(key)]
