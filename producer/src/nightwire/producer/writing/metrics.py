"""The producer's metrics: rates, nothing more; the proof is in the accounts."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from nightwire.producer.visits.counts import VisitCounts

BEHIND = (0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)
"""Upper edges of the histogram of delays. [s]"""


class Metrics:
    """Count what `simulate` does.

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
        """Return who counts by how much an alert of *survey* was late. [s]"""
        return self._behind.labels(survey).observe

    def closed(self, ledger: VisitCounts) -> None:
        """Count the visit of *ledger*."""
        self._alerts.labels(ledger.survey).inc(ledger.acknowledged)
        for reason, count in ledger.refused.items():
            self._refused.labels(ledger.survey, reason).inc(count)
        self._visits.labels(ledger.survey).inc()
        self._latest.labels(ledger.survey).set(ledger.opened.timestamp())
