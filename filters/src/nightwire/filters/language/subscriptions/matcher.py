"""Which of many subscriptions pass which alerts of a table."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nightwire.filters.language.program import Program, names_of
from nightwire.filters.language.subscriptions.forms import NormalForm, reduced
from nightwire.filters.language.subscriptions.index import FormIndex, slots_in
from nightwire.filters.language.vector import evaluate_all
from nightwire.filters.language.vector.run import Run
from nightwire.filters.language.vector.values import Array
from nightwire.schemas import AlertTable


@dataclass(frozen=True, eq=False)
class Matches:
    """Who passes n alerts; it holds until the matcher changes.

    Attributes:
        offsets: Alert i is passed by ``numbers[offsets[i]:offsets[i + 1]]``; shape (n + 1,).
        numbers: Numbers of subscriptions, ascending for each alert.
        known: The keys of all subscriptions by number.
    """

    offsets: Array
    numbers: Array
    known: Sequence[Any]

    @property
    def counts(self) -> Array:
        """How many pass each alert; shape (n,)."""
        return np.diff(self.offsets)

    def keys(self, alert: int) -> list[Any]:
        """Return the keys of the subscriptions that pass an alert."""
        found = self.numbers[self.offsets[alert] : self.offsets[alert + 1]]
        return [self.known[number] for number in found.tolist()]


class Matcher:
    """Subscriptions, each under a key, for tables of alerts.

    An alert whose condition has a fault is not passed, as `evaluate` has it, and what the fault is
    `evaluate` says.
    """

    def __init__(self) -> None:
        self._index = FormIndex()
        self._numbers: dict[Hashable, int] = {}
        self._keys: list[Any] = []
        self._others: dict[int, Program] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._numbers

    @property
    def names(self) -> list[str]:
        """Columns that a table must have, ordered as they came."""
        nodes = [node for term in self._index.terms for node in term.nodes]
        others = [name for program in self._others.values() for name in program.names]
        return [*dict.fromkeys([*names_of(nodes), *others])]

    def insert(self, key: Hashable, condition: Program | NormalForm) -> None:
        """Add a subscription.

        Raises:
            KeyError: There is one of this key.
        """
        self._check_new(key)
        found = reduced(condition)
        if isinstance(found, NormalForm):
            number = self._index.add(found)
        else:
            number = self._index.slot()
            self._others[number] = found
        self._know(key, number)

    def insert_many(self, forms: Iterable[tuple[Hashable, NormalForm]]) -> None:
        """Add many subscriptions, much faster than one by one.

        Raises:
            KeyError: There is one of a key.
        """
        keys = list[Hashable]()

        def each() -> Iterable[NormalForm]:
            for key, form in forms:
                self._check_new(key)
                keys.append(key)
                yield form

        for key, number in zip(keys, self._index.add_many(each()), strict=True):
            self._know(key, number)

    def remove(self, key: Hashable) -> None:
        """Remove a subscription.

        Raises:
            KeyError: There is none of this key.
        """
        number = self._numbers.pop(key)
        self._others.pop(number, None)
        self._index.remove(number)

    def match(self, table: AlertTable) -> Matches:
        """Return who passes the alerts of *table*, which has the columns `names`."""
        others = self._judged_one_by_one(table)
        counts, numbers = [np.zeros(1, np.int64)], list[Array]()
        with np.errstate(all="ignore"):
            for begin, passed in self._index.passed(Run(table)):
                for number, verdicts in others:
                    passed[:, number >> 3] |= verdicts[begin : begin + len(passed)] << np.uint8(number & 7)
                found, bits = slots_in(passed.reshape(-1)), 8 * passed.shape[1]
                firsts = np.searchsorted(found, np.arange(len(passed) + 1) * bits)
                counts.append(np.diff(firsts))
                numbers.append(found - np.repeat(np.arange(len(passed)) * bits, counts[-1]))
        return Matches(
            np.cumsum(np.concatenate(counts)), np.concatenate([*numbers, np.zeros(0, np.int64)]), self._keys
        )

    def _judged_one_by_one(self, table: AlertTable) -> list[tuple[int, Array]]:
        verdicts = evaluate_all([*self._others.values()], table) if self._others else []
        found = [one.passed.view(np.uint8) for one in verdicts]
        return [*zip(self._others, found, strict=True)]

    def _check_new(self, key: Hashable) -> None:
        if key in self._numbers:
            raise KeyError(f"there is a subscription {key!r} already; remove it first")

    def _know(self, key: Hashable, number: int) -> None:
        self._numbers[key] = number
        self._keys.extend([None] * (number + 1 - len(self._keys)))
        self._keys[number] = key
