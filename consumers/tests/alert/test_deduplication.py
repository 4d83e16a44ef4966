"""The memory that duplicates are known by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.consumers.alert.deduplication import Deduplicator, RecentKeys

keys = st.lists(st.integers(0, 30), max_size=200)


@given(keys, st.integers(1, 10))
def test_the_latest_are_remembered_and_no_more_than_twice_as_many(came: list[int], window: int) -> None:
    recent = RecentKeys(window)
    for at, key in enumerate(came):
        recent.add([key])
        distinct = list(dict.fromkeys(reversed(came[: at + 1])))
        assert all(one in recent for one in distinct[:window])
        assert len(recent) <= 2 * window


@given(st.lists(keys, max_size=10))
def test_what_is_chosen_and_remembered_is_each_alert_once_in_order(batches: list[list[int]]) -> None:
    deduplicator = Deduplicator("offset", RecentKeys(1000))
    out = []
    for batch in batches:
        chosen = [batch[at] for at in deduplicator.select_new(batch)]
        deduplicator.remember(chosen)
        out += chosen
    assert out == list(dict.fromkeys(key for batch in batches for key in batch))


def test_what_was_chosen_and_not_handed_out_is_still_new() -> None:
    deduplicator = Deduplicator("offset", RecentKeys(10))
    assert deduplicator.select_new([1, 2, 1]) == deduplicator.select_new([1, 2, 1]) == [0, 1]


def test_without_dedup_all_are_new() -> None:
    deduplicator = Deduplicator(None, RecentKeys(10))
    deduplicator.remember([None, None])
    assert deduplicator.select_new([None, None]) == [0, 1]
    assert len(deduplicator.recent) == 0


def test_a_window_holds_something() -> None:
    with pytest.raises(ValueError, match="window=0: remember at least one"):
        RecentKeys(0)
