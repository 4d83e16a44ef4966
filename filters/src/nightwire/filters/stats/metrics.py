"""The filter engine's metrics.  Rates only: the proof that in = out is in the accounts.

Each filter has nine plain numbers: nine thousand series for a thousand filters.  Delays are one
histogram for all filters; the delays of one filter are in its owner's topic (see `publish`).
"""

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nightwire.core.runtime import now_ms
from nightwire.filters.decision.decision import Decision
from nightwire.filters.delivery.deliver import AcknowledgedCopy
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.stats.collector import StatsCollector
from nightwire.filters.stats.filter_stats import COLUMNS, ROWS, BatchTotals, batch_totals, evaluation_mode

BATCH_BUCKETS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""Upper ends of the buckets of a batch's duration. [s]"""

DELAY_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.3, 1.7, 2.3, 3.0, 4.0, 6.0, 10.0, 20.0, 60.0, 300.0)
"""Upper ends of the buckets of delays, fine at the goals: 0.5, 1.3 s when steady, 3 and 6. [s]"""


class SlowLaneMetrics:
    """What is told of the slow lanes, each one owner's.

    Args:
        gauge: Makes a gauge of a name, a text and labels.
        counter: Makes a counter.
    """

    def __init__(self, gauge: Callable[..., Gauge], counter: Callable[..., Counter]) -> None:
        self.filters = gauge("slow_filters", "Filters of an owner in the slow lane.", "owner")
        self.records = gauge("slow_lag_records", "Records not yet judged in the slow lane.", "owner")
        self.seconds = gauge("slow_lag_seconds", "How far the slow lane is behind.", "owner")
        self.unjudged = counter("alerts_unjudged_total", "Alerts too old for the filter's lane.", "filter")


class Metrics:
    """The engine's metrics, in a registry of the caller's.

    Args:
        registry: The registry.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"nightwire_filters_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"nightwire_filters_{name}", text, labels, registry=registry)

        self.judged = counter("records_judged_total", "Records read and judged or dead-lettered.", "source")
        self.undecodable = counter("records_dead_lettered_total", "Records that are no alert.", "source")
        self.expired = counter("records_expired_total", "Records deleted before they were read.", "source")
        self.passed = counter("alerts_passed_total", "Alerts that passed the filter.", "filter")
        self.rejected = counter("alerts_rejected_total", "Alerts that the filter did not want.", "filter")
        self.faulted = counter("alerts_faulted_total", "Alerts on which the filter failed.", "filter")
        self.capped = counter("alerts_capped_total", "Alerts cut off by the filter's cap.", "filter")
        self.cpu = counter(
            "cpu_seconds_total", "CPU time of judging, by columns or by rows.", "filter", "way"
        )
        self.late = counter("late_total", "Batches in which the CPU time of a filter ran out.", "filter")
        self.sent = counter("copies_acknowledged_total", "Copies that Kafka acknowledged.", "topic")
        self.bytes = counter(
            "copied_bytes_total", "Bytes of copies: by broker's stream, and of all users' topics.", "to"
        )
        self.suspended = counter(
            "suspensions_total", "Filters suspended: too slow, or always failing.", "filter"
        )
        self.requests = counter(
            "requests_total", "Owners' requests: accepted, refused, or failed (dead letters).", "outcome"
        )
        self.restarts = counter("query_restarts_total", "Times that the query was started again.")
        self.batch = Histogram(
            "nightwire_filters_batch_seconds",
            "Time of a batch, from planned to accounted.",
            buckets=BATCH_BUCKETS,
            registry=registry,
        )
        self.delay = _delay_histogram(registry)
        self.phase, self.spark_phase = (
            Summary(f"nightwire_filters_{name}_seconds", text, ["phase"], registry=registry)
            for name, text in (
                ("phase", "Parts of a batch."),
                ("spark_phase", "Parts of a batch, as Spark reports them."),
            )
        )
        self.spark_rows = gauge("spark_input_rows", "Rows of Spark's last batch: passed alerts alone.")
        self.records = gauge("batch_records", "Records of the last batch.")
        self.lag = gauge("lag_records", "Records not yet judged.", "source")
        self.set = gauge("set_version", "Version of the filter set of the last batch.")
        self.live = gauge("live_filters", "Filters in the last batch, by columns or by rows.", "way")
        self.slow_lanes = SlowLaneMetrics(gauge, counter)
        self.held = gauge("held_alerts", "Alerts held by filters that take the best.")
        self.running = gauge("query_running", "Whether the query runs.")
        self.collector = StatsCollector()
        self._copies, self._known = list[AcknowledgedCopy](), set[str]()
        registry.register(StoppedMostCollector(self.collector))

    def acknowledged(self, copy: AcknowledgedCopy) -> None:
        """Remember a copy until its batch is done."""
        self._copies.append(copy)

    def batch_begins(self) -> None:
        """Forget the copies of a batch that failed: it runs again, and sends them again."""
        self._copies = []

    def batch_done(
        self,
        decision: Decision,
        live: Sequence[LiveFilter],
        held: int,
        seconds: float,
        *,
        again: bool = False,
    ) -> None:
        """Count a batch.

        Args:
            decision: Its decision.
            live: The filters of its set, by number.
            held: Alerts that wait for the end of their visit.
            seconds: Its duration. [s]
            again: Whether its alerts were counted before, by this process or the one before.
        """
        self.batch.observe(seconds)
        self.held.set(held)
        self.set.set(decision.filters)
        modes = Tally(map(evaluation_mode, live))
        for mode in (COLUMNS, ROWS):
            self.live.labels(mode).set(modes[mode])
        if not again:
            self._count(decision, live)

    def slow_batch_done(
        self, decision: Decision, live: Sequence[LiveFilter], copies: Sequence[AcknowledgedCopy]
    ) -> None:
        """Count a batch of a slow lane; the quick lane counts its records.

        Args:
            decision: Its decision.
            live: The filters of the lane, by number.
            copies: What Kafka acknowledged.
        """
        self._count_judged(decision, live)
        unjudged = sum(one.unjudged for one in decision.counts)
        for one in live:  # begins at zero
            self.slow_lanes.unjudged.labels(one.key).inc(unjudged)
        self._count_copies(dict.fromkeys((one.key for one in live), "slow"), copies)

    def slow_lag(self, lane: str, live: Sequence[LiveFilter], records: int, seconds: float) -> None:
        """Show how far a slow lane is behind. [s]"""
        owner = lane.rpartition(".")[0]
        self.slow_lanes.filters.labels(owner).set(len(live))
        self.slow_lanes.records.labels(owner).set(records)
        self.slow_lanes.seconds.labels(owner).set(seconds)
        self.collector.set_lag(live, records, seconds, now_ms())

    def _count(self, decision: Decision, live: Sequence[LiveFilter]) -> None:
        self._count_judged(decision, live)
        self._count_sources(decision)
        copies, self._copies = self._copies, []
        self._count_copies({one.key: one.choice for one in live}, copies)

    def _count_judged(self, decision: Decision, live: Sequence[LiveFilter]) -> None:
        totals = batch_totals(decision.counts, len(live))
        self.collector.add_batch(decision, totals, live)
        self._count_filters(totals, live)
        for filter_index, number in Tally(decision.overflow.filter_index).items():
            self.capped.labels(decision.overflow.filters[filter_index][0]).inc(number)

    def _count_sources(self, decision: Decision) -> None:
        for name in ("read", "decode"):  # in all tasks together
            spent = sum(getattr(one, f"{name}_us") for one in decision.counts)
            self.phase.labels(name).observe(1e-6 * spent)
        self.records.set(sum(one.read for one in decision.counts))
        for source, some in groupby(decision.counts, key=lambda one: one.range.topic):
            read, dead, gone = np.sum(
                [(one.read, one.undecodable, one.expired) for one in some], axis=0
            ).tolist()
            self.judged.labels(source).inc(read)
            self.undecodable.labels(source).inc(dead)
            self.expired.labels(source).inc(gone)

    def _count_filters(self, totals: BatchTotals, live: Sequence[LiveFilter]) -> None:
        rejected = totals.evaluated - totals.passed - totals.faulted
        columns = ((self.passed, totals.passed), (self.rejected, rejected), (self.faulted, totals.faulted))
        for number in np.flatnonzero(totals.evaluated).tolist():
            one = live[number]
            for counter, column in columns:
                if column[number] or one.key not in self._known:  # begins at zero
                    counter.labels(one.key).inc(int(column[number]))
            self._known.add(one.key)
            self.cpu.labels(one.key, evaluation_mode(one)).inc(1e-6 * int(totals.cpu_us[number]))
        for number in totals.late:
            self.late.labels(live[number].key).inc()

    def _count_copies(self, choices: dict[str, str], copies: Sequence[AcknowledgedCopy]) -> None:
        self.collector.add_copies(copies)
        for topic, number in Tally(copy.topic for copy in copies).items():
            self.sent.labels(topic).inc(number)
        sizes: dict[str, int] = defaultdict(int)
        for copy in copies:
            sizes[copy.topic if copy.topic.startswith("broker.") else "users"] += copy.size
        for to, size in sizes.items():
            self.bytes.labels(to).inc(size)
        for copy in copies:  # a delay below zero is due to clocks that differ
            self.delay.labels(choices.get(copy.key, "first")).observe(max(0.0, copy.delay))

    def spark_progress(self, progress: dict[str, Any]) -> None:
        """Count one batch by Spark's report, the JSON of ``StreamingQueryProgress``."""
        self.spark_rows.set(progress.get("numInputRows", 0))
        for phase, duration in progress.get("durationMs", {}).items():
            self.spark_phase.labels(phase).observe(duration / 1000)


def _delay_histogram(registry: CollectorRegistry) -> Histogram:
    """Return the delays by choice, those of slow lanes apart; each begins at zero, so that the
    first visit is an increase.
    """
    text = "From Kafka's timestamp of an alert to the acknowledged copy in a filter's topic."
    histogram = Histogram(
        "nightwire_filters_delay_seconds", text, ["choice"], buckets=DELAY_BUCKETS, registry=registry
    )
    for choice in ("first", "best", "slow"):
        histogram.labels(choice)
    return histogram


class StoppedMostCollector(Collector):
    """The condition that stopped most of each filter's alerts: one series a filter, labelled by it.

    Args:
        stats: The statistics of all filters.
    """

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        """Yield the share of the alerts that the condition stopped, for each filter."""
        text = "Of a sample of alerts that did not pass, the share that the condition stopped."
        labels = ["filter", "stage", "condition"]
        family = GaugeMetricFamily("nightwire_filters_stopped_most_ratio", text, labels=labels)
        for key, condition, share in self._stats.stopped_most():
            family.add_metric([key, f"filter.{key.replace('/', '.')}", condition], share)
        yield family
