"""The metrics of `nightwire simulate`: rates; the proof that in = out is in the accounts."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from nightwire.producer.visits.counts import VisitCounts

BEHIND = (0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)
"""Upper edges of the histogram of delays. [s]"""


class Metrics:
    """The rates of `nightwire simulate`.

    Args:
        registry: Where the metrics live.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._alerts = Counter(
            "nightwire_producer_alerts", "Alerts acknowledged by Kafka", ["survey"], registry=registry
        )
        self._refused = Counter(
            "nightwire_producer_refused", "Alerts not written", ["survey", "reason"], registry=registry
        )
        self._visits = Counter("nightwire_producer_visits", "Visits closed", ["survey"], registry=registry)
        self._behind = Histogram(
            "nightwire_producer_behind_seconds",
            "By how much alerts were handed over later than they were due",
            ["survey"],
            buckets=BEHIND,
            registry=registry,
        )
        self._latest = Gauge(
            "nightwire_producer_last_visit_timestamp_seconds",
            "When the latest visit was opened",
            ["survey"],
            registry=registry,
        )

    def behind(self, survey: str) -> Callable[[float], None]:
        """Return a function that counts by how much an alert of *survey* was late. [s]"""
        return self._behind.labels(survey).observe

    def closed(self, counts: VisitCounts) -> None:
        """Count the visit of *counts*."""
        self._alerts.labels(counts.survey).inc(counts.acknowledged)
        for reason, count in counts.refused.items():
            self._refused.labels(counts.survey, reason).inc(count)
        self._visits.labels(counts.survey).inc()
        self._latest.labels(counts.survey).set(counts.opened.timestamp())
