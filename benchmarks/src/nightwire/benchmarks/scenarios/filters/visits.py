"""What a run has: an engine with so many filters, and visits of new alerts that are sent to it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from nightwire.benchmarks.environment.alert_pool import Alert, patched
from nightwire.benchmarks.environment.filter_engine import FilterEngine
from nightwire.benchmarks.environment.filter_mixture import MixedFilter, mixture
from nightwire.benchmarks.model.scenario import Context
from nightwire.benchmarks.workers.alerts.feed import alert_writer

FIRST_VISIT = 2026_0105_00000
LONGEST = 900_000
"""Longest transaction: what Kafka allows unless it is told otherwise. [ms]"""

EndOffsets = dict[int, int]
"""The offset after the last record, by partition."""


@dataclass(frozen=True)
class FilterSetting:
    """What an experiment measures.

    Attributes:
        context: Says how much.
        engine: The engine.
        visits: What sends.
        count: Number of filters; and
        code: how many of them cannot be compiled.
    """

    context: Context
    engine: FilterEngine
    visits: "Visits"
    count: int
    code: int

    def filters(self) -> list[MixedFilter]:
        """Return the filters."""
        return mixture(self.count, self.code, self.visits.pool)


@dataclass
class Visits:
    """Sends one visit after the other, alert by alert or so that all appears at one moment.

    No two visits have the same number, nor two alerts the same id.
    """

    engine: FilterEngine
    pool: Sequence[Alert]
    visits: int = 0
    alerts: int = 0

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
        note, ends = self.engine.delivered()
        number, alerts = self.next, patched(self.pool, count, visit=self.next, first=self.alerts)
        self.visits, self.alerts = self.visits + 1, self.alerts + count

        def write() -> None:
            for alert in alerts:
                writer.write(alert, visit=number, on_delivered=note)
            writer.flush()

        return client, ends, write
