"""Filters at work in the terminal: summaries, their texts, the table of `nightwire filter top`."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

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
from nightwire.filters.cli.tables import top_view

NOW = datetime(2025, 11, 24, 16, 0, 0, tzinfo=UTC)


def record(name: str = "fast", *, minutes: float = 10, **about: Any) -> dict[str, Any]:
    """Return a filter's record, written *minutes* after it began."""
    known = {
        "owner": "me", "name": name, "version": 1, "way": "columns", "since": NOW - timedelta(minutes=10),
        "evaluated": 60_000, "passed": 600, "faulted": 0, "sent": 400, "capped": 200, "cpu": 0.06,
        "delay_p50": 0.4, "delay_p99": 1.25, "evaluated_at": NOW, "passed_at": NOW - timedelta(seconds=75),
        "stopped": {"line 3: alert.snr > 5": 48, "line 2: if alert.flux is None": 16},
        "lane": "quick", "behind": None, "behind_s": None, "unjudged": 0,
        "time": NOW - timedelta(minutes=10) + timedelta(minutes=minutes),
    }  # fmt: skip
    return known | about


def test_cost_and_rate_are_recent_and_counts_are_of_all_time() -> None:
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


def test_all_live_filters_are_shown_also_those_without_a_record() -> None:
    snapshot = Snapshot({"me/fast": record(), "me/gone": record("gone")}, ["me/fast", "me/new"])
    assert [(one.key, one.way) for one in summaries_of(snapshot)] == [("me/fast", "columns"), ("me/new", "")]
    assert [one.key for one in summaries_of(Snapshot(snapshot.records))] == [
        "me/fast",
        "me/gone",
    ]  # without the live filters


def test_a_slow_lane_says_how_far_it_is_behind() -> None:
    slow = summary_of(record(lane="slow", behind=1_200, behind_s=75.0, unjudged=30_000))
    assert slow.lane_text == "slow, 1 min behind"
    said = "in the slow lane, 1,200 alerts or 75 s behind; 30,000 alerts were too old for it"
    assert said in list(summary_lines(slow, NOW))
    assert summary_of(record(lane="slow", behind=0, behind_s=0.0)).lane_text == "slow"


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
    ("seconds", "text"),
    [
        (-3, "0 s ago"),
        (0, "0 s ago"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (7300, "2 h ago"),
        (9e5, "10 d ago"),
    ],
)
def test_ages_are_in_their_largest_unit(seconds: float, text: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == text


def test_numbers_have_two_digits_or_all_before_the_point() -> None:
    assert [number_text(one) for one in (None, 0.0421, 1.0, 9.99, 17.4, 1204.0)] == [
        "·", "0.042", "1.0", "10.", "17", "1,204",
    ]  # fmt: skip


def shown(width: int) -> list[str]:
    """Return the lines of the table in a terminal of some width."""
    slow = record("slow", way="rows", cpu=3.0, faulted=7, passed=0, passed_at=None, delay_p99=None)
    view = top_view([summary_of(record()), FilterSummary("me/new"), summary_of(slow)], NOW)
    console = Console(width=width, record=True, force_terminal=True, file=io.StringIO())
    for part in view:
        console.print(part)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_the_table_fits_its_terminal_and_the_dearest_filter_comes_first(width: int) -> None:
    lines = shown(width)
    assert max(map(len, lines)) <= width
    top = next(at for at, line in enumerate(lines) if line.startswith("filter"))
    assert [line.split()[0] for line in lines[top + 1 : top + 4]] == ["me/slow", "me/fast", "me/new"]
    assert "µs/alert" in lines[top]
    assert ("stopped most" in lines[top]) == (width >= 100)
    assert ("p50 s" in lines[top]) == (width >= 140)


def test_a_wide_table_says_everything() -> None:
    head, _, titles, slow, fast, new = shown(200)
    assert "3 live filters · 100 alerts/s · 0.5% of a core · 1 judged alert by alert" in head
    assert titles.split()[0] == "filter"
    assert fast.split()[:2] == ["me/fast", "quick"]
    assert "600   1.00%" in fast
    assert "1 min ago" in fast
    assert fast.rstrip().endswith("75% line 3: alert.snr > 5")
    assert "50" in slow
    assert set(new.split()[1:]) == {"·"}


def test_the_table_is_shown_anew_until_somebody_stops_it(capsys: pytest.CaptureFixture[str]) -> None:
    snapshots = [Snapshot({"me/fast": record()}), Snapshot({"me/fast": record(), "me/late": record("late")})]

    def take() -> Snapshot:
        if not snapshots:
            raise KeyboardInterrupt
        return snapshots.pop(0)

    watch_top(Snapshot({}), take, 0.01)
    assert "me/late" in capsys.readouterr().out
