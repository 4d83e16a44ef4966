"""All that the filter engine tells Prometheus.  Rates only: the proof that in = out is in the accounts.

What there is one of for each filter is a plain number: eight series, eight thousand for a thousand filters.
Delays are a histogram for all of them together; the filter's own are in its owner's topic (`_ledger`).
"""

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from nightwire.filters.decision.decision import Decision
from nightwire.filters.delivery.deliver import AcknowledgedCopy
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.stats.collector import StatsCollector
from nightwire.filters.stats.filter_stats import COLUMNS, ROWS, BatchTotals, batch_totals, evaluation_mode

SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)


class Metrics:
    """The engine's metrics, in a registry of the caller's.

    Args:
        registry: Where they are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"nightwire_filters_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"nightwire_filters_{name}", text, labels, registry=registry)

        self.judged = counter("records_judged_total", "Records read and judged or dead-lettered.", "source")
        self.dead = counter("records_dead_lettered_total", "Records that are no alert.", "source")
        self.expired = counter("records_expired_total", "Records deleted before they were read.", "source")
        self.passed = counter("alerts_passed_total", "Alerts that passed the filter.", "filter")
        self.rejected = counter("alerts_rejected_total", "Alerts that the filter did not want.", "filter")
        self.faulted = counter("alerts_faulted_total", "Alerts on which the filter failed.", "filter")
        self.capped = counter("alerts_capped_total", "Alerts cut off by the filter's cap.", "filter")
        self.cpu = counter(
            "cpu_seconds_total", "CPU time of judging, by columns or by rows.", "filter", "way"
        )
        self.late = counter("late_total", "Batches in which a filter had no time left.", "filter")
        self.sent = counter("copies_acknowledged_total", "Copies that Kafka acknowledged.", "topic")
        self.bytes = counter(
            "copied_bytes_total", "Bytes of copies: by broker's stream, and of all users' topics.", "to"
        )
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
        self.phase = Summary(
            "nightwire_filters_phase_seconds", "Parts of a batch.", ["phase"], registry=registry
        )
        self.spark_phase = Summary(
            "nightwire_filters_spark_phase_seconds",
            "Parts of a batch, as Spark tells them.",
            ["phase"],
            registry=registry,
        )
        self.spark_rows = gauge("spark_input_rows", "Rows of Spark's last batch: what passed, not alerts.")
        self.records = gauge("batch_records", "Records of the last batch.")
        self.lag = gauge("lag_records", "Offsets not yet judged.", "source")
        self.set = gauge("set_version", "Filter set of the last batch.")
        self.live = gauge("live_filters", "Filters in the last batch, by columns or by rows.", "way")
        self.held = gauge("held_alerts", "Alerts held by filters that take the best.")
        self.running = gauge("query_running", "Whether the query runs.")
        self.ledger, self.delays = StatsCollector(), DelayHistogram()
        self._copies: list[AcknowledgedCopy] = []
        self._known: set[str] = set()
        registry.register(self.delays)
        registry.register(StoppedMostCollector(self.ledger))

    def acknowledged(self, copy: AcknowledgedCopy) -> None:
        """Take note of a copy that arrived."""
        self._copies.append(copy)

    def batch_begins(self) -> None:
        """Forget the copies of a batch that was given up: it is run again, and sends them again."""
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
        """Count what a batch did.

        Args:
            decision: What was decided for it.
            live: The filters of its set, by number.
            held: How many alerts wait for the end of their visit.
            seconds: How long it took. [s]
            again: Whether it was counted before, by this process or the one before: only its run is counted.
        """
        self.batch.observe(seconds)
        self.held.set(held)
        self.set.set(decision.filters)
        ways = Tally(map(evaluation_mode, live))
        for each in (COLUMNS, ROWS):
            self.live.labels(each).set(ways[each])
        if not again:
            self._count(decision, live)

    def _count(self, decision: Decision, live: Sequence[LiveFilter]) -> None:
        added = batch_totals(decision.counts, len(live))
        self.ledger.batch(decision, added, live)
        self._count_sources(decision)
        self._count_filters(added, live)
        for judge, number in Tally(decision.cut.judge).items():
            self.capped.labels(decision.cut.judges[judge][0]).inc(number)
        self._count_copies({one.key: one.choice for one in live})

    def _count_sources(self, decision: Decision) -> None:
        self.records.set(sum(one.read for one in decision.counts))
        for source, some in groupby(decision.counts, key=lambda one: one.range.topic):
            read, dead, gone = np.sum([(one.read, one.dead, one.gone) for one in some], axis=0).tolist()
            self.judged.labels(source).inc(read)
            self.dead.labels(source).inc(dead)
            self.expired.labels(source).inc(gone)

    def _count_filters(self, added: BatchTotals, live: Sequence[LiveFilter]) -> None:
        rejected = added.evaluated - added.passed - added.faulted
        columns = ((self.passed, added.passed), (self.rejected, rejected), (self.faulted, added.faulted))
        for number in np.flatnonzero(added.evaluated).tolist():
            one = live[number]
            for counter, column in columns:
                if column[number] or one.key not in self._known:  # what never happened is zero, not unknown
                    counter.labels(one.key).inc(int(column[number]))
            self._known.add(one.key)
            self.cpu.labels(one.key, evaluation_mode(one)).inc(1e-6 * int(added.cost[number]))
        for number in added.late:
            self.late.labels(live[number].key).inc()

    def _count_copies(self, choices: dict[str, str]) -> None:
        copies, self._copies = self._copies, []
        self.ledger.copies(copies)
        for topic, number in Tally(copy.topic for copy in copies).items():
            self.sent.labels(topic).inc(number)
        sizes: dict[str, int] = defaultdict(int)
        for copy in copies:
            sizes[copy.topic if copy.topic.startswith("broker.") else "users"] += copy.size
        for to, size in sizes.items():
            self.bytes.labels(to).inc(size)
        delays: dict[str, list[float]] = defaultdict(list)
        for copy in copies:
            delays[choices.get(copy.key, "first")].append(copy.delay)
        for choice, some in delays.items():
            self.delays.observe(choice, some)

    def spark_progress(self, progress: dict[str, Any]) -> None:
        """Count one batch as Spark tells of it: ``StreamingQueryProgress`` as JSON has it."""
        self.spark_rows.set(progress.get("numInputRows", 0))
        for phase, duration in progress.get("durationMs", {}).items():
            self.spark_phase.labels(phase).observe(duration / 1000)


class StoppedMostCollector(Collector):
    """What stopped most of each filter's alerts: one series a filter, which names the condition.

    Args:
        ledger: Knows.
    """

    def __init__(self, ledger: StatsCollector) -> None:
        self._ledger = ledger

    def collect(self) -> Iterator[Metric]:
        """Yield the share of each filter's condition that stopped most."""
        text = "Of a sample of alerts that did not pass, the share that the condition stopped."
        labels = ["filter", "stage", "condition"]
        family = GaugeMetricFamily("nightwire_filters_stopped_most_ratio", text, labels=labels)
        for key, condition, share in self._ledger.stopped_most():
            family.add_metric([key, f"filter.{key.replace('/', '.')}", condition], share)
        yield family


BOUNDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.3, 1.7, 2.3, 3.0, 4.0, 6.0, 10.0, 20.0, 60.0, 300.0)
"""Upper ends of the buckets: fine where the goals lie, 0.5 and 1.3 s at a steady rate, 3 and 6. [s]"""

CHOICES = ("first", "best")
"""What filters take of a visit."""
NAME = "nightwire_filters_delay_seconds"
TEXT = "From Kafka's timestamp of an alert to the acknowledged copy in a filter's topic."


class DelayHistogram(Collector):
    """The histogram, one for each choice (`first`, `best`): the best of a visit wait for its end."""

    def __init__(self) -> None:
        self._counts: dict[str, Any] = defaultdict(lambda: np.zeros(len(BOUNDS) + 1, np.int64))
        self._sums: dict[str, float] = defaultdict(float)
        for choice in CHOICES:
            self.observe(choice, [])  # nothing yet is zero: else the first visit would be no increase

    def observe(self, choice: str, delays: Sequence[float]) -> None:
        """Count copies by their *delays* [s]; one below zero, by clocks that differ, counts as none."""
        found = np.maximum(np.asarray(delays, np.float64), 0.0)
        places = np.searchsorted(BOUNDS, found)
        self._counts[choice] = self._counts[choice] + np.bincount(places, minlength=len(BOUNDS) + 1)
        self._sums[choice] += float(found.sum())

    def collect(self) -> Iterator[Metric]:
        """Yield the histogram."""
        family = HistogramMetricFamily(NAME, TEXT, labels=["choice"])
        for choice, counts in sorted(self._counts.items()):
            ends = [*map(str, BOUNDS), "+Inf"]
            buckets = list(zip(ends, np.cumsum(counts).tolist(), strict=True))
            family.add_metric([choice], buckets, self._sums[choice])
        yield family
