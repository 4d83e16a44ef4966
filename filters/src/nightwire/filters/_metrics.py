"""All that the filter engine tells Prometheus.  Rates only: the proof that in = out is in the accounts."""

from collections import Counter as Tally

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from nightwire.filters._decision import Decision
from nightwire.filters._rows import Counts

SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)


class Metrics:
    """The engine's metrics, in a registry of the caller's.

    Args:
        registry: Where they are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"nightwire_filters_{name}", text, labels, registry=registry)

        self.judged = counter("records_judged_total", "Records read and judged or dead-lettered.", "source")
        self.dead = counter("records_dead_lettered_total", "Records that are no alert.", "source")
        self.expired = counter("records_expired_total", "Records deleted before they were read.", "source")
        self.passed = counter("alerts_passed_total", "Alerts that passed the filter.", "filter")
        self.rejected = counter("alerts_rejected_total", "Alerts that the filter did not want.", "filter")
        self.faulted = counter("alerts_faulted_total", "Alerts on which the filter failed.", "filter")
        self.capped = counter("alerts_capped_total", "Alerts cut off by the filter's cap.", "filter")
        self.sent = counter("copies_acknowledged_total", "Copies that Kafka acknowledged.", "topic")
        self.suspended = counter(
            "suspensions_total", "Filters suspended: too slow, or always failing.", "filter"
        )
        self.restarts = counter("query_restarts_total", "Times that the query was started again.")
        self.batch = Histogram(
            "nightwire_filters_batch_seconds",
            "From planned to accounted.",
            buckets=SECONDS,
            registry=registry,
        )
        self.lag = Gauge(
            "nightwire_filters_lag_records", "Offsets not yet judged.", ["source"], registry=registry
        )
        self.set = Gauge("nightwire_filters_set_version", "Filter set of the last batch.", registry=registry)
        self.live = Gauge("nightwire_filters_live_filters", "Filters in the last batch.", registry=registry)
        self.held = Gauge(
            "nightwire_filters_held_alerts", "Alerts held by filters that take the best.", registry=registry
        )
        self.running = Gauge("nightwire_filters_query_running", "Whether the query runs.", registry=registry)

    def acknowledged(self, topic: str) -> None:
        """Count a copy that arrived in *topic*."""
        self.sent.labels(topic).inc()

    def batch_done(self, decision: Decision, held: int, seconds: float) -> None:
        """Count what a batch did; *held* is how many alerts wait for the end of their visit."""
        self.batch.observe(seconds)
        self.held.set(held)
        self.set.set(decision.filters)
        self.live.set(len(decision.judges))
        for one in decision.counts:
            source = one.range.topic
            self.judged.labels(source).inc(one.read)
            self.dead.labels(source).inc(one.dead)
            self.expired.labels(source).inc(one.gone)
            self._count_filters(one, decision)
        for judge, number in Tally(decision.cut.judge).items():
            self.capped.labels(decision.cut.judges[judge][0]).inc(number)

    def _count_filters(self, one: Counts, decision: Decision) -> None:
        for judge, evaluated, passed, faulted in zip(
            one.judges, one.evaluated, one.passed, one.faulted, strict=True
        ):
            key, _ = decision.judges[judge]
            self.passed.labels(key).inc(passed)
            self.rejected.labels(key).inc(evaluated - passed - faulted)
            self.faulted.labels(key).inc(faulted)
