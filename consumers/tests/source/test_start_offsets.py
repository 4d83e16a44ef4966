"""Where to begin, and the last N of a topic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.start_offsets import NewestRecords, StartOffset, at_time, resume, tails
from nightwire.core.kafka import Watermarks


@pytest.mark.parametrize(
    ("committed", "initial", "expected"),
    [
        (None, 10, StartOffset(10)),  # never here: where it was asked to begin
        (None, 3, StartOffset(5)),
        (None, 99, StartOffset(20)),
        (12, 5, StartOffset(12)),
        (20, 5, StartOffset(20)),
        (2, 20, StartOffset(5, expired=3)),  # Kafka deleted three that nobody read
        (25, 20, StartOffset(5)),  # the topic was made anew
    ],
)
def test_a_group_goes_on_where_it_was(committed: int | None, initial: int, expected: StartOffset) -> None:
    assert resume(committed, Watermarks(5, 20), initial) == expected


def test_nothing_as_new_as_a_time_means_the_end() -> None:
    assert [at_time(found, Watermarks(5, 20)) for found in (-1, 5, 7, 0)] == [20, 5, 7, 5]


def test_tails_leave_out_what_is_empty_and_stop_at_the_oldest() -> None:
    held = {("t", 0): Watermarks(0, 100), ("t", 1): Watermarks(97, 100), ("t", 2): Watermarks(4, 4)}
    assert tails(held, 10) == {("t", 0): 90, ("t", 1): 97}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20), st.integers(0, 3))), st.integers(1, 8))
def test_newest_are_the_last_of_all_partitions_by_time(items: list[tuple[str, int, int]], count: int) -> None:
    newest: NewestRecords[tuple[int, int, int]] = NewestRecords(count)
    everything: dict[str, list[tuple[int, int, int]]] = {"a": [], "b": []}
    for offset, (topic, time, partition) in enumerate(items):
        newest.offer((topic, partition), offset, time, (time, partition, offset))
        everything[topic].append((time, partition, offset))
    expected = sorted(item for all_ in everything.values() for item in sorted(all_)[-count:])
    assert list(newest.in_order()) == expected


@pytest.mark.parametrize(
    ("plan", "begins"),
    [
        (Plan(["t"]), "live"),
        (Plan(["t"], follow=False), "beginning"),
        (Plan(["t"], group="g"), "beginning"),
        (Plan(["t"], group="g", start="live"), "live"),
        (Plan(["t"], start="beginning"), "beginning"),
    ],
)
def test_reading_begins_where_people_expect_it(plan: Plan, begins: str) -> None:
    assert plan.begins == begins


def test_all_that_is_wrong_with_a_plan_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"no topic.*last and start exclude.*at least one.*without a group"):
        Plan([], group="g", last=0, start="live")
