"""Subscriptions and events by the thousands: ranges of six attributes, and a text among six.

Each attribute is uniform from 0 to 1, as if told by its rank.  A subscription has one, two or three
ranges, of such widths that it passes 2.8 % of all events on average; one in ten wants one of the
six texts as well, and is the wider for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.filters.language.subscriptions import NormalForm, Term, ValueSet, field_term
from nightwire.schemas import AlertTable, survey

Array = np.ndarray[Any, Any]

ATTRIBUTES = tuple(f"measured.x{number}" for number in range(6))
TERMS = tuple(map(field_term, ATTRIBUTES))
TEXT = "measured.band"
TEXTS = tuple("grizuy")
PASSED = 0.028
"""Share of all events that a subscription passes, on average."""


@dataclass(frozen=True)
class Subscriptions:
    """The constraints of n subscriptions, as arrays.

    Attributes:
        low: Least value of each attribute, -inf where it is free; shape (n, 6).
        high: Largest value; shape (n, 6).
        text: Which text is wanted, -1 for any; shape (n,).
    """

    low: Array
    high: Array
    text: Array

    def __len__(self) -> int:
        return len(self.text)

    def forms(self) -> Iterator[NormalForm]:
        """Yield their normal forms."""
        rows = zip(self.low.tolist(), self.high.tolist(), self.text.tolist(), strict=True)
        for low, high, text in rows:
            sets: dict[Term, ValueSet] = {
                term: ValueSet(((begin, False), (end, True)))
                for term, begin, end in zip(TERMS, low, high, strict=True)
                if begin > -np.inf
            }
            if text >= 0:
                sets[WANTED_TEXT] = TEXT_SETS[text]
            yield NormalForm(sets)


WANTED_TEXT = field_term(TEXT)
TEXT_SETS = [ValueSet(texts=(text, f"{text}\0")) for text in TEXTS]


def subscriptions(count: int, seed: int = 0) -> Subscriptions:
    """Return so many subscriptions, the same for the same *seed*."""
    random = np.random.default_rng(seed)
    ranges, text = random.integers(1, 4, count), random.integers(0, len(TEXTS), count)
    text[random.random(count) >= 0.1] = -1
    share = np.where(text >= 0, len(TEXTS) * PASSED, PASSED) * random.uniform(0.6, 1.4, count)
    width = share ** (1 / ranges)
    wanted = random.random((count, 6)).argsort(axis=1).argsort(axis=1) < ranges[:, None]
    low = random.random((count, 6)) * (1 - width[:, None])
    return Subscriptions(np.where(wanted, low, -np.inf), np.where(wanted, low + width[:, None], np.inf), text)


def tightened(count: int, templates: int, seed: int = 0) -> Subscriptions:
    """Return *templates*, and behind them others, each one of these with its ranges tightened."""
    random = np.random.default_rng(seed)
    of = subscriptions(templates, seed)
    chosen = np.concatenate([np.arange(templates), random.integers(0, templates, count - templates)])
    low, high, text = of.low[chosen], of.high[chosen], of.text[chosen]
    less = random.uniform(0, 0.3, (2, *low.shape)) * (np.arange(count) >= templates)[:, None]
    free = np.isinf(low)
    width = np.where(free, 0, np.where(free, 0, high) - np.where(free, 0, low))
    also = (text < 0) & (random.random(count) < 0.3) & (np.arange(count) >= templates)
    text = np.where(also, random.integers(0, len(TEXTS), count), text)
    return Subscriptions(low + less[0] * width, high - less[1] * width, text)


@dataclass(frozen=True)
class Events:
    """Events, as arrays of their values: shapes (n, 6) and (n,)."""

    values: Array
    text: Array

    def table(self) -> AlertTable:
        """Return them as columns."""
        columns = {name: pa.array(self.values[:, at]) for at, name in enumerate(ATTRIBUTES)}
        columns[TEXT] = pa.array([TEXTS[one] for one in self.text.tolist()])
        return AlertTable(pa.RecordBatch.from_pydict(columns), survey("sim"))


def events(count: int, seed: int = 1) -> Events:
    """Return so many events, the same for the same *seed*."""
    random = np.random.default_rng(seed)
    return Events(random.random((count, 6)), random.integers(0, len(TEXTS), count))
