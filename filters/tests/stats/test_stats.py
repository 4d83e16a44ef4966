"""Statistics of filters: counts, costs, delays, conditions; as metrics and as records."""

import io
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.text import Text

from nightwire.filters.cli.inspect import watch_top
from nightwire.filters.cli.summaries import (
    FilterSummary,
    Snapshot,
    ago,
    number_text,
    summaries_of,
    summary_lines,
    summary_of,
)
from nightwire.filters.cli.tables import Column, fitting_columns, top_view
from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.select import Overflow
from nightwire.filters.delivery.deliver import AcknowledgedCopy
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import PassedAlert, RangeCounts
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.stats.collector import StatsCollector
from nightwire.filters.stats.filter_stats import MAX_SAMPLE, FilterStats, batch_totals
from nightwire.filters.stats.metrics import DELAY_BUCKETS, Metrics
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


def told(collector: StatsCollector) -> dict[str, dict[str, Any]]:
    """Return what owners are told, by filter; each record fits the schema."""
    found = [records.SEEN.decode(records.SEEN.encode(one)) for one in collector.changed_records(NOON)]
    return {one["name"]: one for one in found}


def test_an_owner_is_told_what_his_filters_did_and_only_when_they_did_something() -> None:
    collector = StatsCollector()
    batch = decision(counts(0, 3, STOPPED), counts(1, 4), cut=CUT)
    collector.add_batch(batch, batch_totals(batch.counts, 2), LIVE)
    collector.add_copies([AcknowledgedCopy("filter.me.fast", "me/fast", delay) for delay in (0.2, 0.4, 0.9)])
    found = told(collector)
    fast, slow = found["fast"], found["slow"]
    assert (fast["evaluated"], fast["passed"], fast["sent"], fast["capped"]) == (20, 7, 3, 1)
    assert (fast["way"], slow["way"], slow["version"], slow["faulted"]) == ("columns", "rows", 3, 4)
    assert (fast["cpu"], slow["cpu"]) == pytest.approx((1e-5, 4e-3))
    assert (fast["delay_p50"], slow["delay_p50"]) == (0.4, None)
    assert (fast["passed_at"].timestamp() * 1000, slow["passed_at"]) == (NOON, None)
    assert slow["stopped"] == STOPPED[1]
    assert told(collector) == {}


def test_a_new_version_begins_anew_but_for_when_something_passed() -> None:
    collector = StatsCollector()
    batch = decision(counts(0, 3))
    collector.add_batch(batch, batch_totals(batch.counts, 2), LIVE)
    newer = [LiveFilter("me", "fast", 2, "sim", "", "keep"), LIVE[1]]
    later = decision(counts(0, 0), at=NOON + 9)
    collector.add_batch(later, batch_totals(later.counts, 2), newer)
    fast = told(collector)["fast"]
    assert (fast["version"], fast["way"], fast["evaluated"], fast["passed"]) == (2, "rows", 10, 0)
    assert fast["passed_at"].timestamp() * 1000 == NOON
    assert fast["evaluated_at"].timestamp() * 1000 == NOON + 9


def test_when_something_passed_last_outlives_the_engine() -> None:
    first, second = StatsCollector(), StatsCollector()
    batch, nothing = decision(counts(0, 3)), decision(counts(1, 0), at=NOON + 9)
    first.add_batch(batch, batch_totals(batch.counts, 2), LIVE)
    second.restore(told(first).values())
    second.add_batch(nothing, batch_totals(nothing.counts, 2), LIVE)
    assert told(second)["fast"]["passed_at"].timestamp() * 1000 == NOON


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
def test_delays_of_a_filter_are_told_by_their_ranks(delays: Iterable[float], found: list[float]) -> None:
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

    assert [below(str(end)) for end in DELAY_BUCKETS[:3]] == [2, 3, 3]  # an end belongs to its bucket
    assert (below("300.0"), below("+Inf"), below("60.0", "best")) == (4, 5, 1)
    name = "nightwire_filters_delay_seconds_sum"
    assert registry.get_sample_value(name, {"choice": "first"}) == pytest.approx(1002.200001)


def test_prometheus_hears_of_a_batch() -> None:
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


def test_copies_of_a_batch_that_is_given_up_are_not_counted_beside_those_that_follow() -> None:
    registry = CollectorRegistry()
    metrics, copy = Metrics(registry), AcknowledgedCopy("filter.me.fast", "me/fast", 0.35)
    for _ in range(2):  # Kafka went away after the first of them had arrived
        metrics.batch_begins()
        metrics.acknowledged(copy)
    metrics.batch_done(decision(counts(0, 3)), LIVE, 0, 0.1)
    topic = {"topic": "filter.me.fast"}
    assert registry.get_sample_value("nightwire_filters_copies_acknowledged_total", topic) == 1
    assert told(metrics.collector)["fast"]["sent"] == 1


NOW = datetime(2025, 11, 24, 16, 0, 0, tzinfo=UTC)


def record(name: str = "fast", *, minutes: float = 10, **about: Any) -> dict[str, Any]:
    """Return what the engine tells of a filter that began *minutes* ago."""
    known = {
        "owner": "me", "name": name, "version": 1, "way": "columns", "since": NOW - timedelta(minutes=10),
        "evaluated": 60_000, "passed": 600, "faulted": 0, "sent": 400, "capped": 200, "cpu": 0.06,
        "delay_p50": 0.4, "delay_p99": 1.25, "evaluated_at": NOW, "passed_at": NOW - timedelta(seconds=75),
        "stopped": {"line 3: alert.snr > 5": 48, "line 2: if alert.flux is None": 16},
        "time": NOW - timedelta(minutes=10) + timedelta(minutes=minutes),
    }  # fmt: skip
    return known | about


def test_cost_and_rate_are_of_late_and_counts_of_all_time() -> None:
    before = record(minutes=9, evaluated=30_000, cpu=0.05)
    one = summary_of(record(), before)
    assert (one.evaluated, one.rate, one.cost_us) == (60_000, 500.0, pytest.approx(1 / 3))
    alone = summary_of(record())
    assert (alone.rate, alone.cost_us, alone.load) == (100.0, pytest.approx(1.0), pytest.approx(1e-4))
    idle = summary_of(record(), record())
    assert (idle.rate, idle.cost_us, idle.load) == (0.0, pytest.approx(1.0), 0.0)
    other_version = summary_of(record(), {**before, "version": 7})
    assert other_version == alone
    assert summary_of(record(evaluated=0, cpu=0.0)).cost_us is None


def test_live_filters_are_shown_and_those_that_did_nothing_as_well() -> None:
    look = Snapshot({"me/fast": record(), "me/gone": record("gone")}, ["me/fast", "me/new"])
    assert [(one.key, one.way) for one in summaries_of(look)] == [("me/fast", "columns"), ("me/new", "")]
    assert [one.key for one in summaries_of(Snapshot(look.records))] == [
        "me/fast",
        "me/gone",
    ]  # not told which are live


def test_a_filter_at_work_is_described() -> None:
    assert list(summary_lines(summary_of(record()), NOW)) == [
        "judged 60,000 alerts in 10 min, 1.0 µs of CPU each; 600 passed (1.00%), 400 sent, 200 cut off, "
        "0 failed",
        "last passed 1 min ago; from the producer to your topic 0.4 s, 99 of 100 within 1.2 s",
        "stopped  75% by line 3: alert.snr > 5",
        "stopped  25% by line 2: if alert.flux is None",
    ]
    assert list(summary_lines(FilterSummary("me/new"), NOW)) == []


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3, "0 s ago"),
        (0, "0 s ago"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (7300, "2 h ago"),
        (9e5, "10 d ago"),
    ],
)
def test_times_are_told_in_their_largest_unit(seconds: float, said: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == said


def test_numbers_have_two_digits_or_all_before_the_point() -> None:
    assert [number_text(one) for one in (None, 0.0421, 1.0, 9.99, 17.4, 1204.0)] == [
        "·", "0.042", "1.0", "10.", "17", "1,204",
    ]  # fmt: skip


def shown(width: int) -> list[str]:
    """Return the lines of the table in a terminal of some width."""
    slow = record("slow", way="rows", cpu=3.0, faulted=7, passed=0, passed_at=None, delay_p99=None)
    view = top_view([summary_of(record()), FilterSummary("me/new"), summary_of(slow)], NOW, width=width)
    console = Console(width=width, record=True, force_terminal=True, file=io.StringIO())
    console.print(view)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_the_table_fits_its_terminal_and_the_dearest_filter_comes_first(width: int) -> None:
    lines = shown(width)
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines[-3:]] == ["me/slow", "me/fast", "me/new"]
    assert "µs/alert" in lines[-4]
    assert ("stopped most" in lines[-4]) == (width >= 100)
    assert ("p50 s" in lines[-4]) == (width >= 200)


def test_a_wide_table_says_everything() -> None:
    head, _, titles, slow, fast, new = shown(200)
    assert "3 live filters · 100 alerts/s · 0.5% of a core · 1 judged alert by alert" in head
    assert titles.split()[0] == "filter"
    assert fast.split()[:2] == ["me/fast", "columns"]
    assert "600   1.00%" in fast
    assert "1 min ago" in fast
    assert fast.rstrip().endswith("75% line 3: alert.snr > 5")
    assert "50" in slow
    assert set(new.split()[1:]) == {"·"}


def test_what_matters_least_is_left_out_first() -> None:
    first, second, third = (
        Column(name, lambda *_: Text(), order) for name, order in (("a", 0), ("b", 9), ("c", 1))
    )
    widths = {first: 10, second: 10, third: 10}
    assert list(fitting_columns(widths, 34)) == [first, second, third]
    assert list(fitting_columns(widths, 30)) == [first, third]
    assert fitting_columns({replace(first, max_width=4): 10}, 7) == {replace(first, max_width=4): 7}


def test_the_table_is_shown_anew_until_somebody_stops_it(capsys: pytest.CaptureFixture[str]) -> None:
    looks = [Snapshot({"me/fast": record()}), Snapshot({"me/fast": record(), "me/late": record("late")})]

    def look() -> Snapshot:
        if not looks:
            raise KeyboardInterrupt
        return looks.pop(0)

    watch_top(Snapshot({}), look, 0.01)
    assert "me/late" in capsys.readouterr().out
