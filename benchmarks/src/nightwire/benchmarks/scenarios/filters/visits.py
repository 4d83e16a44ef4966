"""What a run has: an engine with so many filters, and visits of new alerts that are sent to it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from confluent_kafka import Producer

from nightwire.benchmarks import Context
from nightwire.benchmarks.environment.alert_pool import Alert, ReadyMessage, patched, ready_messages
from nightwire.benchmarks.environment.filter_engine import Coverage, FilterEngine
from nightwire.benchmarks.environment.filter_mixture import MixedFilter, habit_kinds, habits, mixture
from nightwire.benchmarks.workers.alerts.feed import alert_writer, delivered
from nightwire.schemas import topics

FIRST_VISIT = 2026_0105_00000
LONGEST = 900_000
"""Longest transaction: what Kafka allows unless it is told otherwise. [ms]"""
MIXTURES = {1: 0, 10: 2, 100: 20, 500: 35, 1_000: 50}
"""How many of so many filters cannot be compiled."""
PATIENT = 500
"""Filters above which slow ones are not waited for: a visit takes them a quarter of an hour."""
SETTLING = 1.0
"""After its accounts an engine may say which filters go on in slow lanes from there. [s]"""

EndOffsets = dict[int, int]
"""The offset after the last record, by partition."""


@dataclass(frozen=True)
class FilterSetting:
    """What an experiment measures.

    Attributes:
        context: Says how much.
        engine: The engine.
        visits: What sends.
        count: Number of filters.
        what: What they are, in names: ``filters``, ``habits``, ``quick-habits``.
        make: Makes them, of alerts to choose limits by.
    """

    context: Context
    engine: FilterEngine
    visits: "Visits"
    count: int
    what: str
    make: Callable[[Sequence[Alert]], list[MixedFilter]]

    @classmethod
    def mixed(cls, context: Context, engine: FilterEngine, visits: "Visits", count: int) -> Self:
        """Return the setting of *count* filters that each pass their share."""
        return cls(
            context, engine, visits, count, "filters", lambda pool: mixture(count, MIXTURES[count], pool)
        )

    @classmethod
    def habits(cls, context: Context, engine: FilterEngine, visits: "Visits", owners: int) -> Self:
        """Return the setting of all notebooks of habits, live for so many owners."""
        kinds = habit_kinds()
        count = owners * len(kinds)
        return cls(context, engine, visits, count, "habits", lambda _: habits(owners, kinds))

    @classmethod
    def quick(cls, context: Context, engine: FilterEngine, visits: "Visits", owners: int) -> Self:
        """Return the setting of as many quick notebooks for each of so many owners."""
        kinds = [one.kind for one in habits(1, habit_kinds()) if not one.slow][:owners]
        return cls(context, engine, visits, owners * owners, "quick-habits", lambda _: habits(owners, kinds))

    @property
    def label(self) -> str:
        """How its figures are called: ``100_filters``."""
        return f"{self.count}_{self.what.replace('-', '_')}"

    @property
    def patient(self) -> bool:
        """Whether slow filters are waited for."""
        return self.what == "filters" or self.count <= PATIENT

    @cached_property
    def filters(self) -> list[MixedFilter]:
        """The filters."""
        return self.make(self.visits.pool)

    @property
    def quick_ones(self) -> list[MixedFilter]:
        """Those that are quick."""
        return [one for one in self.filters if not one.slow]

    def await_lanes(self, coverage: Coverage, ends: EndOffsets) -> float:
        """Wait until all lanes are done before *ends*, if they are waited for, and forget it all.

        Returns:
            When they were. [s]
        """
        if not self.patient:
            return coverage.await_ends(ends)
        done = coverage.await_ends(ends)
        time.sleep(SETTLING)
        if self.engine.slow_owners():
            done = coverage.await_ends(ends, self.engine.slow_owners)
        self.engine.forget(ends)
        return done


def topics_of(filters: Sequence[MixedFilter]) -> list[str]:
    """Return the topics of what passes *filters*."""
    return [topics.filter_topic(one.owner, one.name) for one in filters]


@dataclass
class Visits:
    """Sends one visit after the other, alert by alert or so that all appears at one moment.

    No two visits have the same number, nor two alerts the same id.
    """

    engine: FilterEngine
    pool: Sequence[Alert]
    visits: int = 0
    alerts: int = 0

    @cached_property
    def ready(self) -> list[ReadyMessage]:
        """The pool as the messages that Kafka would get."""
        return ready_messages(self.pool)

    @property
    def next(self) -> int:
        """Number of the visit that is sent next."""
        return FIRST_VISIT + self.visits

    def send(self, topic: str, count: int) -> tuple[float, EndOffsets]:
        """Send a visit alert by alert; return when it began [s], and where it ends."""
        _client, ends, write = self._visit(topic, count)
        began = time.monotonic()
        write()
        return began, ends

    def send_at_once(self, topic: str, count: int) -> tuple[float, EndOffsets]:
        """Send a visit in a transaction: nobody reads any of it before all of it is there.

        Returns:
            When all of it was there [s], and where it ends.
        """
        client, ends, write = self._visit(
            topic,
            count,
            transactional_id=f"{topic}-{self.next}",
            transaction_timeout_ms=LONGEST,
            delivery_timeout_ms=LONGEST,
        )
        client.init_transactions(60)
        client.begin_transaction()
        write()
        began = time.monotonic()
        client.commit_transaction(60)
        return began, ends

    def _visit(
        self, topic: str, count: int, **overrides: Any
    ) -> tuple[Producer, EndOffsets, Callable[[], None]]:
        """Return a client, where the next visit ends, and what writes its alerts."""
        writer, _codec, client = alert_writer(self.engine.bootstrap, topic, **overrides)
        note, ends = delivered()
        number, alerts = self.next, patched(self.pool, count, visit=self.next, first=self.alerts)
        self.visits, self.alerts = self.visits + 1, self.alerts + count

        def write() -> None:
            for alert in alerts:
                writer.write(alert, visit=number, on_delivered=note)
            writer.flush()

        return client, ends, write
