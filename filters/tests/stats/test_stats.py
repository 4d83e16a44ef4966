"""Statistics of filters: counts, costs, delays, conditions; as metrics and as records."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import Stop
from nightwire.filters.decision.apply_quotas import Overflow
from nightwire.filters.decision.decision import Decision
from nightwire.filters.delivery.deliver import AcknowledgedCopy
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import PassedAlert, RangeCounts
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.stats.collector import StatsCollector
from nightwire.filters.stats.filter_stats import MAX_SAMPLE, FilterStats, batch_totals
from nightwire.filters.stats.metrics import DELAY_BUCKETS, Metrics
from nightwire.filters.stats.publish import StatsPublisher
from nightwire.schemas import records

LIVE = [
    LiveFilter("me", "fast", 1, "sim", "", "keep", program="x"),
    LiveFilter("me", "slow", 3, "sim", "", "keep", choice="best"),
]
JUDGES = [(one.key, one.version) for one in LIVE]
HIT = PassedAlert("alerts.sim", 0, 5, 1000, 7, "a5")
NOON = 1_764_000_000_000


def counts(
    partition: int, passed: int, stopped: Mapping[int, Mapping[str, int]] | None = None
) -> RangeCounts:
    """Return counts of ten alerts: *passed* passed the first filter, the second failed on two."""
    return RangeCounts(
        OffsetRange("alerts.sim", partition, 0, 10), 10, filters=[0, 1], evaluated=[10, 10],
        passed=[passed, 0], faulted=[0, 2], cpu_us=[5, 2000], stopped=stopped or {},
    )  # fmt: skip


def decision(*ranges: RangeCounts, at: int = NOON, cut: Overflow = Overflow()) -> Decision:  # noqa: B008 - it is frozen
    return Decision(4, JUDGES, at=at, counts=ranges, overflow=cut)


CUT = Overflow([HIT], JUDGES, [0], [0], [None])
STOPPED = {1: {"line 2: alert.flux > 3": 6, "line 3: alert.snr > 5": 2}}


def test_ranges_add_up_by_filter() -> None:
    found = batch_totals([counts(0, 3), counts(1, 4)], 3)
    assert found.evaluated.tolist() == [20, 20, 0]
    assert found.passed.tolist() == [7, 0, 0]
    assert found.faulted.tolist() == [0, 4, 0]
    assert found.cpu_us.tolist() == [10, 4000, 0]
    old = batch_totals(
        [
            RangeCounts(
                OffsetRange("alerts.sim", 0, 0, 1), 1, filters=[0], evaluated=[1], passed=[1], faulted=[0]
            )
        ],
        1,
    )
    assert (old.evaluated.tolist(), old.cpu_us.tolist()) == ([1], [0])


def published(collector: StatsCollector) -> dict[str, dict[str, Any]]:
    """Return the published records by filter; each fits the schema."""
    found = [records.SEEN.decode(records.SEEN.encode(one)) for one in collector.changed_records(NOON)]
    return {one["name"]: one for one in found}


def test_records_are_published_of_filters_that_changed_and_of_no_others() -> None:
    collector = StatsCollector()
    batch = decision(counts(0, 3, STOPPED), counts(1, 4), cut=CUT)
    collector.add_batch(batch, batch_totals(batch.counts, 2), LIVE)
    collector.add_copies([AcknowledgedCopy("filter.me.fast", "me/fast", delay) for delay in (0.2, 0.4, 0.9)])
    found = published(collector)
    fast, slow = found["fast"], found["slow"]
    assert (fast["evaluated"], fast["passed"], fast["sent"], fast["capped"]) == (20, 7, 3, 1)
    assert (fast["way"], slow["way"], slow["version"], slow["faulted"]) == ("columns", "rows", 3, 4)
    assert (fast["cpu"], slow["cpu"]) == pytest.approx((1e-5, 4e-3))
    assert (fast["delay_p50"], slow["delay_p50"]) == (0.4, None)
    assert (fast["passed_at"].timestamp() * 1000, slow["passed_at"]) == (NOON, None)
    assert slow["stopped"] == STOPPED[1]
    assert published(collector) == {}


def test_a_new_version_keeps_only_the_time_of_the_last_passed_alert() -> None:
    collector = StatsCollector()
    batch = decision(counts(0, 3))
    collector.add_batch(batch, batch_totals(batch.counts, 2), LIVE)
    newer = [LiveFilter("me", "fast", 2, "sim", "", "keep"), LIVE[1]]
    later = decision(counts(0, 0), at=NOON + 9)
    collector.add_batch(later, batch_totals(later.counts, 2), newer)
    fast = published(collector)["fast"]
    assert (fast["version"], fast["way"], fast["evaluated"], fast["passed"]) == (2, "rows", 10, 0)
    assert fast["passed_at"].timestamp() * 1000 == NOON
    assert fast["evaluated_at"].timestamp() * 1000 == NOON + 9


def test_the_time_of_the_last_passed_alert_outlives_the_engine() -> None:
    first, second = StatsCollector(), StatsCollector()
    batch, nothing = decision(counts(0, 3)), decision(counts(1, 0), at=NOON + 9)
    first.add_batch(batch, batch_totals(batch.counts, 2), LIVE)
    second.restore(published(first).values())
    second.add_batch(nothing, batch_totals(nothing.counts, 2), LIVE)
    assert published(second)["fast"]["passed_at"].timestamp() * 1000 == NOON


class AwayProducer(ControlProducer):
    """A producer whose Kafka is away."""

    def __init__(self) -> None:
        pass

    @contextmanager
    def writer(self, *topics: str) -> Iterator[Any]:
        raise DeliveryError(f"{topics[0]} is away")
        yield


def test_records_that_kafka_did_not_take_are_published_again() -> None:
    collector, batch = StatsCollector(), decision(counts(0, 3))
    collector.add_batch(batch, batch_totals(batch.counts, 2), LIVE)
    with pytest.raises(DeliveryError, match=r"seen\.me is away"):
        StatsPublisher("", collector, Stop(), AwayProducer()).publish()
    assert sorted(published(collector)) == ["fast", "slow"]


def test_a_condition_that_stops_most_now_displaces_one_of_long_ago() -> None:
    seen = FilterStats("me/f", 1)
    for _ in range(100):
        seen.add_stopped({"old": 60})
    for _ in range(60):
        seen.add_stopped({"new": 60})
    assert seen.stopped.total() <= MAX_SAMPLE
    assert seen.stopped["new"] > seen.stopped["old"]


@pytest.mark.parametrize(
    ("delays", "found"),
    [([], [None, None]), ([0.3], [0.3, 0.3]), ([4, 1, 3, 2], [2, 4]), (range(1, 201), [100, 198])],
)
def test_quantiles_of_delays_are_delays_of_copies(delays: Iterable[float], found: list[float]) -> None:
    assert FilterStats("me/f", 1, delays=deque(delays)).delay_quantiles(0.5, 0.99) == found


def test_delays_are_a_histogram_by_choice() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    for delay in (-3.0, 0.1, 0.100001, 2.0, 1000.0):
        metrics.acknowledged(AcknowledgedCopy("filter.me.fast", "me/fast", delay))
    metrics.acknowledged(AcknowledgedCopy("filter.me.slow", "me/slow", 40.0))
    metrics.batch_done(decision(), LIVE, 0, 0.1)

    def below(end: str, choice: str = "first") -> float | None:
        name = "nightwire_filters_delay_seconds_bucket"
        return registry.get_sample_value(name, {"le": end, "choice": choice})

    # an end belongs to its bucket
    assert [below(str(end)) for end in DELAY_BUCKETS[:3]] == [2, 3, 3]
    assert (below("300.0"), below("+Inf"), below("60.0", "best")) == (4, 5, 1)
    name = "nightwire_filters_delay_seconds_sum"
    assert registry.get_sample_value(name, {"choice": "first"}) == pytest.approx(1002.200001)


def test_a_batch_is_in_the_metrics() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.acknowledged(AcknowledgedCopy("filter.me.fast", "me/fast", 0.35))
    metrics.batch_done(decision(counts(0, 3, STOPPED), counts(1, 4), cut=CUT), LIVE, 2, 0.7)
    metrics.spark_progress({"numInputRows": 9, "durationMs": {"addBatch": 600, "walCommit": 40}})

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"nightwire_filters_{name}", labels)

    assert sample("alerts_passed_total", filter="me/fast") == 7
    assert sample("alerts_rejected_total", filter="me/slow") == 16
    assert sample("alerts_faulted_total", filter="me/slow") == 4
    assert sample("alerts_capped_total", filter="me/fast") == 1
    assert sample("cpu_seconds_total", filter="me/slow", way="rows") == pytest.approx(0.004)
    assert sample("copies_acknowledged_total", topic="filter.me.fast") == 1
    assert sample("records_judged_total", source="alerts.sim") == 20
    assert sample("live_filters", way="rows") == 1
    assert sample("batch_records") == 20
    assert sample("delay_seconds_count", choice="first") == 1
    assert sample("spark_phase_seconds_sum", phase="addBatch") == 0.6
    line = {"filter": "me/slow", "stage": "filter.me.slow", "condition": "line 2: alert.flux > 3"}
    assert sample("stopped_most_ratio", **line) == 0.75
    metrics.batch_done(decision(), LIVE, 0, 0.1)  # a copy is counted once
    assert sample("copies_acknowledged_total", topic="filter.me.fast") == 1


def test_copies_of_a_failed_batch_are_not_counted_with_those_of_the_next_attempt() -> None:
    registry = CollectorRegistry()
    metrics, copy = Metrics(registry), AcknowledgedCopy("filter.me.fast", "me/fast", 0.35)
    for _ in range(2):  # Kafka went away after the first of them had arrived
        metrics.batch_begins()
        metrics.acknowledged(copy)
    metrics.batch_done(decision(counts(0, 3)), LIVE, 0, 0.1)
    topic = {"topic": "filter.me.fast"}
    assert registry.get_sample_value("nightwire_filters_copies_acknowledged_total", topic) == 1
    assert published(metrics.collector)["fast"]["sent"] == 1
