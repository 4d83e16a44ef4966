"""Arithmetic on offsets."""

from hypothesis import given
from hypothesis import strategies as st

from nightwire.filters.model.offsets import (
    OffsetRange,
    advance,
    chunks,
    lag,
    positions,
    ranges,
    share_out,
    to_offset,
    version,
)

A, B, C = ("alerts.sim", 0), ("alerts.sim", 1), ("alerts.ztf", 0)
partitions = st.sampled_from([A, B, C])
offsets_ = st.dictionaries(partitions, st.integers(0, 1000), max_size=3)


def test_an_offset_as_spark_keeps_it() -> None:
    offset = {"alerts.sim": {"0": 3, "1": 4}, "alerts.ztf": {"0": 5}, "filters": 57}
    assert to_offset({A: 3, B: 4, C: 5}, 57) == offset
    assert positions(offset) == {A: 3, B: 4, C: 5}
    assert version(offset) == 57


@given(offsets_, offsets_, st.integers(0, 2000))
def test_a_batch_never_goes_back_nor_past_the_end_nor_over_the_limit(
    start: dict[tuple[str, int], int], ends: dict[tuple[str, int], int], limit: int
) -> None:
    end = advance(start, ends, limit)
    steps = {partition: end[partition] - start.get(partition, 0) for partition in end}
    backlog = sum(max(0, ends[partition] - start.get(partition, 0)) for partition in ends)
    assert all(step >= 0 for step in steps.values())
    assert all(end[partition] <= max(ends.get(partition, 0), start.get(partition, 0)) for partition in end)
    assert sum(steps.values()) == min(limit, backlog)


def test_the_limit_is_shared_and_what_one_does_not_need_goes_to_the_others() -> None:
    assert advance({A: 10}, {A: 1000, B: 5, C: 1000}, 105) == {A: 60, B: 5, C: 50}
    assert advance({}, {A: 1000}, None) == {A: 1000}


def test_a_new_partition_starts_at_its_beginning() -> None:
    assert ranges({A: 3}, {A: 5, B: 9, C: 2}, {B: 4, C: 2}) == [OffsetRange(*A, 3, 5), OffsetRange(*B, 4, 9)]


def test_work_is_shared_out_evenly_and_the_same_each_time() -> None:
    work = [OffsetRange(*A, 0, 100), OffsetRange(*B, 0, 60), OffsetRange(*C, 0, 50)]
    assert share_out(work, 2) == [(work[0],), (work[1], work[2])]
    assert share_out(work[::-1], 2) == share_out(work, 2)
    assert share_out([], 2) == []


def test_lag_is_what_is_not_done() -> None:
    assert lag({A: 10, B: 10, C: 7}, {A: 4}, {B: 8, C: 0}) == {"alerts.sim": 8, "alerts.ztf": 7}


def test_work_is_done_in_parts_that_are_not_too_large() -> None:
    work = [OffsetRange("t", 0, 5, 30), OffsetRange("t", 1, 0, 3), OffsetRange("t", 2, 7, 8)]
    assert chunks(work, 10) == [
        [OffsetRange("t", 0, 5, 15)],
        [OffsetRange("t", 0, 15, 25)],
        [OffsetRange("t", 0, 25, 30), OffsetRange("t", 1, 0, 3), OffsetRange("t", 2, 7, 8)],
    ]
    assert chunks(work, 100) == [work]
    assert chunks([], 10) == []
