"""The metrics of `nightwire ingest`: rates and lag; the proof that in = out is in the accounts."""

import time
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from nightwire.core.kafka import TopicPartition
from nightwire.producer.ingest.items import Item

MAX_ROUND = 60.0
"""How long one round of the loop may take in good health; more where Kafka is away. [s]"""


class Metrics:
    """Shows rates, lag, and whether alerts wait for a schema.

    Args:
        registry: Where the metrics live.
        survey: Name of the survey.
        clock: Gives the time. [s]
    """

    def __init__(
        self, registry: CollectorRegistry, survey: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._survey = survey
        self._clock, self._last_round = clock, clock()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"nightwire_ingest_{name}", text, ["survey", *labels], registry=registry)

        self._read = counter("records_read", "Records of the source that are mirrored or dead letters")
        self._alerts = counter("alerts", "Alerts in Kafka")
        self._dead = counter("dead_letters", "Records of the source that went to dead-letters")
        self._rejected = counter("rejected", "Records of the source without an alert here", "reason")
        self._batches = counter("transactions", "Transactions that Kafka committed")
        self._lag = Gauge(
            "nightwire_ingest_lag_records",
            "Offsets of the source that are not mirrored yet",
            ["survey", "topic", "partition"],
            registry=registry,
        )
        self._waiting = Gauge(
            "nightwire_ingest_waits_for_schema",
            "Whether alerts wait for a schema that no registry has",
            ["survey"],
            registry=registry,
        )
        self._latest = Gauge(
            "nightwire_ingest_last_batch_timestamp_seconds",
            "When Kafka committed the latest transaction",
            ["survey"],
            registry=registry,
        )
        self._waiting.labels(survey).set(0)

    def round_done(self) -> None:
        """Note that the loop has done another round."""
        self._last_round = self._clock()

    def healthy(self) -> bool:
        """Return whether the loop does its rounds."""
        return self._clock() - self._last_round < MAX_ROUND

    def delivered(self, items: Sequence[Item]) -> None:
        """Count *items* that Kafka has acknowledged."""
        for item in items:
            self._read.labels(self._survey).inc(item.read)
            self._alerts.labels(self._survey).inc(len(item.outputs))
            if item.dead_letter_reason is not None:
                self._dead.labels(self._survey).inc(item.read)
            if item.rejected is not None:
                self._rejected.labels(self._survey, item.rejected).inc(item.read)
        self._batches.labels(self._survey).inc()
        self._latest.labels(self._survey).set_to_current_time()

    def state(self, lag: Mapping[TopicPartition, int], *, waiting: bool) -> None:
        """Show the *lag*, and whether alerts wait for a schema."""
        self._lag.clear()  # topics of past nights go
        for (topic, partition), count in lag.items():
            self._lag.labels(self._survey, topic, str(partition)).set(count)
        self._waiting.labels(self._survey).set(waiting)
