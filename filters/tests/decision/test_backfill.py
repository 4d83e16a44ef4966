"""Backfills: what is decided of the past, what is on disk, and where the past ends."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from filters.tests.helpers.overflowed import overflowed
from nightwire.core.accounting import discrepancies
from nightwire.filters.decision.accounts import ALL_SENT
from nightwire.filters.decision.backfill_decision import (
    STRIKES,
    BackfillJob,
    BackfillProgress,
    advance_progress,
    backfill_accounts,
    decide_backfill,
    live_from,
    progress_text,
)
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import DEAD, PASSED, RangeCounts, judged_batch, rows_to_arrow
from nightwire.filters.model.offsets import OffsetRange

LIVE = LiveFilter("ann", "bright", 3, "sim", "", "keep", cap=1, choice="best", output="broker.ann.bright")
JOB = BackfillJob("ann", "bright", 3, since=1000, until={("alerts.sim", 0): 20, ("alerts.sim", 1): 5})


def counts(partition: int, first: int, end: int, **more: Any) -> RangeCounts:
    """Return what the filter did with a range, of which nothing was dead or expired unless *more*
    says so.
    """
    some = {"read": end - first, "filters": [0], "evaluated": [end - first], "passed": [0], "faulted": [0]}
    return RangeCounts(OffsetRange("alerts.sim", partition, first, end), **{**some, **more})


def passed(partition: int, offset: int, when: int) -> tuple[Any, ...]:
    """Return a worker's row of an alert that passed; all are of one visit."""
    row = (PASSED, "alerts.sim", partition, offset, when, 7, f"a{partition}{offset}", [0], [0.5], None)
    return row + (None,) * (len(rows_to_arrow([]).schema) - len(row))


def decided(left: int, *rows: tuple[Any, ...], about: Sequence[RangeCounts]) -> Any:
    """Return the decision on what a worker said."""
    import pyarrow as pa

    table = pa.Table.from_batches([rows_to_arrow([*rows, *(one.row() for one in about)])])
    return decide_backfill(judged_batch(table), LIVE, 0, 5, left)


PASSES = [passed(0, 10, 30), passed(0, 11, 50), passed(1, 0, 20), passed(1, 4, 40)]
COUNTS = [counts(0, 10, 20, passed=[2], passed_alerts=2), counts(1, 0, 5, passed=[2], passed_alerts=2)]


def test_what_is_sent_is_outside_the_cap_in_order_of_time_up_to_the_limit() -> None:
    everything = decided(10, *PASSES, about=COUNTS)
    assert len(everything.items) == 4
    assert everything.topic("ann/bright") == "broker.ann.bright"
    some = decided(3, *PASSES, about=COUNTS)
    assert [item.alert[1:3] for item in some.items] == [(0, 10), (1, 0), (1, 4)]
    assert [(alert.alert, one.version, one.rank) for alert, one in overflowed(some)] == [("a011", 3, 0.5)]
    assert decided(0, *PASSES, about=COUNTS).items == []


def test_the_accounts_of_a_backfill_add_up_and_join() -> None:
    once = backfill_accounts(JOB, decided(3, *PASSES, about=COUNTS), ALL_SENT)
    later = backfill_accounts(
        JOB, decided(0, about=[counts(0, 20, 22, expired=1, read=1, evaluated=[1])]), ALL_SENT
    )
    assert discrepancies([*once, *later]) == []
    assert {one.source for one in once} == {"backfill/ann.bright.3/alerts.sim"}
    assert [one.filters["ann/bright"].capped for one in once] == [1, 0]
    assert later[0].rejected == {"expired": 1, "no-filter-passed": 1}


def test_what_is_no_alert_was_buried_when_it_came() -> None:
    dead = (DEAD, "alerts.sim", 0, 12, *[None] * 5, "broken")
    row = dead + (None,) * (len(rows_to_arrow([]).schema) - len(dead))
    decision = decided(9, row, about=[counts(0, 10, 13, undecodable=1, evaluated=[2])])
    assert decision.undecodable == ()
    (account,) = backfill_accounts(JOB, decision, ALL_SENT)
    assert (account.read, account.dead_lettered) == (2, 0)
    assert discrepancies([account]) == []


def test_how_far_it_is_in_words() -> None:
    reached = advance_progress(BackfillProgress(whole=30), JOB.until or {}, decided(3, *PASSES, about=COUNTS))
    assert (reached.done, reached.batch, reached.strikes) == (15, 1, 0)
    assert progress_text(reached) == "15 alerts judged, 4 passed, 3 sent, 1 to overflow"
    bad = counts(0, 0, 30, expired=2, faulted=[30])
    worse = advance_progress(reached, JOB.until or {}, decided(3, about=[bad]))
    assert progress_text(worse).endswith("1 to overflow, 30 failed, 2 had expired")
    assert worse.strikes == 1 < STRIKES


def test_a_job_waits_on_disk_until_its_version_is_live(tmp_path: Path) -> None:
    jobs = BackfillJobs(tmp_path)
    named = ("ann/bright", 3)
    assert not jobs.waits(named)
    jobs.ask(BackfillJob("ann", "bright", 3, since=1000))
    assert (jobs.waits(named), jobs.waits(("ann/bright", 2)), jobs.due()) == (True, False, [])
    assert jobs.any_waits()
    jobs.begin(named, JOB.until or {})
    assert (jobs.waits(named), jobs.due(), jobs.progress(JOB)) == (False, [JOB], None)
    assert not jobs.any_waits()
    reached = BackfillProgress(at={("alerts.sim", 0): 7}, whole=9, done=2, sent=1)
    jobs.keep_progress(JOB, reached)
    assert jobs.progress(JOB) == reached
    jobs.done(JOB)
    assert jobs.due() == []


@pytest.mark.parametrize(
    ("judges", "first"),
    [([0, 1], 10), ([0], 20)],
    ids=["judged from where the batch began", "too late for this batch"],
)
def test_the_past_ends_where_the_live_stream_begins(judges: list[int], first: int) -> None:
    start = {("alerts.sim", 0): 10, ("alerts.lsst", 2): 5}
    found = live_from(1, start, [counts(0, 10, 20, filters=judges)])
    assert found == {("alerts.sim", 0): first, ("alerts.lsst", 2): 5}
