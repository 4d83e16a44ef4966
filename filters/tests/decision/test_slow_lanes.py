"""Slow lanes on disk: their schedules."""

from pathlib import Path

from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.quota import VisitQuota
from nightwire.filters.decision.slow_lanes import LaneChange, SlowLanes, changes_after, owner_of

PART = ("alerts.sim", 0)
NAMES = (("ann/dear", 1),)
QUOTA = {("sim", 7): VisitQuota(1, 2, 0, {"ann/dear": frozenset({"a1"})})}


def at(offset: int) -> dict[TopicPartition, int]:
    """Return a position."""
    return {PART: offset}


def test_a_lane_is_there_until_its_owner_has_no_slow_filter_and_then_another_begins(tmp_path: Path) -> None:
    lanes = SlowLanes(tmp_path)
    lanes.change("ann", LaneChange(2, 1_000, 5, at(50)))  # of nothing comes nothing
    assert lanes.names() == []
    first = LaneChange(3, 2_000, 7, at(70), NAMES, QUOTA)
    lanes.change("ann", first)
    lanes.change("ann", first)  # the batch is done again
    assert (lanes.current("ann"), lanes.schedule("ann.2000")) == ("ann.2000", [first])
    assert lanes.reached("ann.2000") == at(70)
    end = LaneChange(9, 3_000, 8, at(90))
    lanes.change("ann", end)
    assert (lanes.current("ann"), lanes.schedule("ann.2000")) == (None, [first, end])
    lanes.change("ann", LaneChange(12, 4_000, 9, at(120), NAMES))
    assert lanes.names() == ["ann.2000", "ann.4000"]
    assert (lanes.current("ann"), lanes.needed()) == ("ann.4000", {7, 8, 9})
    lanes.done("ann.2000")
    assert lanes.names() == ["ann.4000"]


def test_names_tell_owners_that_look_like_numbers(tmp_path: Path) -> None:
    lanes = SlowLanes(tmp_path)
    lanes.change("7-ann", LaneChange(1, 900, 1, at(0), NAMES))
    assert [owner_of(name) for name in lanes.names()] == ["7-ann"]


def test_a_change_comes_after_what_lies_before_it_in_any_partition() -> None:
    changes = [LaneChange(number, 0, number, at(10 * number)) for number in range(3)]
    assert [one.batch for one in changes_after(changes, at(0))] == [1, 2]
    assert [one.batch for one in changes_after(changes, at(9))] == [1, 2]
    assert [one.batch for one in changes_after(changes, at(10))] == [2]
    two = LaneChange(4, 0, 4, {PART: 5, ("alerts.sim", 1): 3})
    assert [*changes_after([two], at(5))] == [two]  # the other partition is not there yet
