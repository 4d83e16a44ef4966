"""What filters said, as arrays and as rows."""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from nightwire.filters.evaluation.results import Verdict, at_rows, count_range, passed_rows
from nightwire.filters.evaluation.rowwise import verdict_of_outcome
from nightwire.filters.evaluation.vectorized import merge_verdicts
from nightwire.filters.model.messages import RangeCounts, judged_batch, rows_to_arrow
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.alerts import AlertIdentities, RangeRows
from nightwire.filters.sandbox import Outcome

ROWS = 20
KNOWN = AlertIdentities(
    ["alerts.sim"] * ROWS, [0] * ROWS, list(range(ROWS)), list(range(1000, 1000 + ROWS)), [7] * ROWS,
    [f"a{row}" for row in range(ROWS)],
)  # fmt: skip
rows = st.sets(st.integers(0, ROWS - 1))


def verdict(
    judge: int, passed: set[int], faults: Iterable[int] = (), evaluated: int | None = None
) -> Verdict:
    """Return the verdict of a filter whose rank is the row's number, and none for row 0."""
    some = np.array(sorted(passed), np.int64)
    rank = np.where(some == 0, math.nan, some).astype(float)
    return Verdict(judge, some, rank, dict.fromkeys(sorted(faults), "x"), evaluated)


@given(st.lists(rows, max_size=5), st.integers(0, ROWS))
@settings(deadline=None)
def test_what_workers_say_is_what_the_driver_hears(passed: list[set[int]], cut: int) -> None:
    verdicts = [verdict(judge, some) for judge, some in enumerate(passed)]
    ranges = [
        RangeRows(OffsetRange("alerts.sim", 0, first, end), first, end, end - first)
        for first, end in ((0, cut), (cut, ROWS))
    ]
    counted = [count_range(one, verdicts, KNOWN.alert) for one in ranges]
    found = judged_batch(
        pa.Table.from_batches([passed_rows(verdicts, KNOWN), rows_to_arrow([one.row() for one in counted])])
    )
    for judge, some in enumerate(passed):
        mine = found.filter_index == judge
        assert {found.alerts[at].offset for at in found.alert_index[mine]} == some
        assert all(
            math.isnan(rank) if found.alerts[at].offset == 0 else rank == found.alerts[at].offset
            for at, rank in zip(found.alert_index[mine], found.rank[mine].tolist(), strict=True)
        )
    assert sorted(found.counts, key=lambda one: one.range.end) == sorted(
        counted, key=lambda one: one.range.end
    )
    assert sum(one.passed_alerts for one in counted) == len(set().union(*passed))


@given(rows, rows, st.integers(0, ROWS), st.integers(0, ROWS))
@settings(deadline=None)
def test_counts_add_up_in_every_range(passed: set[int], faulty: set[int], seen: int, cut: int) -> None:
    good = {row for row in passed if row < seen}
    bad = {row for row in faulty - passed if row < seen}
    one = verdict(0, good, bad, seen)
    for first, end in ((0, cut), (cut, ROWS)):
        counted = count_range(
            RangeRows(OffsetRange("alerts.sim", 0, first, end), first, end, end - first), [one], KNOWN.alert
        )
        inside = set(range(first, end))
        assert counted.evaluated == [end - first]
        assert counted.passed == [len(good & inside)]
        assert counted.faulted == [len(bad & inside) + len(inside - set(range(seen)))]
        if bad & inside:
            assert counted.faults[0].alert == f"a{min(bad & inside)}"


@given(rows, rows, rows)
@settings(deadline=None)
def test_rows_that_were_unsure_are_as_the_second_look_says(
    first: set[int], unsure: set[int], second: set[int]
) -> None:
    rows_ = np.array(sorted(unsure), np.int64)
    again = verdict(0, {at for at, row in enumerate(sorted(unsure)) if row in second})
    found = merge_verdicts(verdict(0, first), rows_, at_rows(again, rows_))
    assert set(found.passed.tolist()) == (first - unsure) | (unsure & second)
    assert sorted(found.passed.tolist()) == found.passed.tolist()


def test_ranges_share_what_a_filter_took_by_their_rows_and_one_of_them_has_its_sample() -> None:
    one = replace(verdict(0, {3}), cpu_s=0.004, stopped={"line 2: alert.flux > 3": 8})
    spans = ((0, 0), (0, 15), (15, ROWS))
    ranges = [RangeRows(OffsetRange("alerts.sim", n, *span), *span, 5) for n, span in enumerate(spans)]
    counted = [count_range(one_range, [one], KNOWN.alert) for one_range in ranges]
    assert [found.cpu_us for found in counted] == [[0], [3000], [1000]]
    assert [found.stopped for found in counted] == [{}, {0: one.stopped}, {}]
    heard = judged_batch(to_table(counted)).counts
    assert [(found.cpu_us, found.stopped) for found in heard] == [
        (one.cpu_us, one.stopped) for one in counted
    ]


def to_table(counted: Iterable[RangeCounts]) -> pa.Table:
    return pa.Table.from_batches([rows_to_arrow([one.row() for one in counted])])


def test_what_the_sandbox_says_of_a_stopped_filter() -> None:
    killed = verdict_of_outcome(
        4, Outcome(3, np.array([1]), np.array([0.5]), {2: "x"}, killed="too much memory"), 10
    )
    assert (killed.number, killed.evaluated, killed.late, killed.fault) == (4, 3, True, "too much memory")
    fine = verdict_of_outcome(4, Outcome(10, cpu_s=0.5), 10)
    assert (fine.evaluated, fine.late, fine.fault, fine.cpu_s) == (None, False, None, 0.5)
