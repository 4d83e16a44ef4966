"""The pacing is open loop: what is late is late by its schedule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.runtime import Lateness, on_time


class Time:
    """A clock that moves when somebody waits or works."""

    def __init__(self) -> None:
        self.now = 100.0
        self.leave_at = float("inf")

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def idle(self, left: float) -> bool:
        """Wait for half of what is left, or the last of it: waits may end early."""
        self.now += left / 2 if left > 0.25 else left
        return self.now >= self.leave_at


def test_nothing_is_done_before_it_is_due() -> None:
    time = Time()
    seen = [(due, late, time.now) for due, late in on_time([100.0, 101.0, 104.0], clock=time, idle=time.idle)]
    assert seen == [(100.0, 0.0, 100.0), (101.0, 0.0, 101.0), (104.0, 0.0, 104.0)]


def test_a_stall_makes_all_late_that_was_due_meanwhile_and_moves_no_schedule() -> None:
    time, delays = Time(), []
    for due, late in on_time([100.0, 101.0, 102.0, 106.0], clock=time, idle=time.idle):
        delays.append(late)
        time.now += 3.0 if due == 100.0 else 0.0
    assert delays == [0.0, 2.0, 1.0, 0.0]


def test_it_ends_when_it_is_time_to_leave() -> None:
    time = Time()
    time.leave_at = 101.0
    assert [due for due, _late in on_time([100.0, 105.0], clock=time, idle=time.idle)] == [100.0]


def test_lateness_is_summed_up() -> None:
    lateness = Lateness()
    assert (lateness.greatest, lateness.median) == (0.0, 0.0)
    for delay in (3.0, 1.0, 0.5):
        lateness.note(delay)
    assert (lateness.greatest, lateness.median) == (3.0, 1.0)


@given(st.floats(0.5, 5000))
def test_what_keeps_up_is_done_when_it_is_due(rate: float) -> None:
    time = Time()
    dues = [time.now + number / rate for number in range(20)]
    for due, late in on_time(dues, clock=time, idle=time.idle):
        assert time.now == pytest.approx(due)
        assert late == pytest.approx(0.0, abs=1e-9)


def test_a_hopelessly_slow_one_moves_no_schedule() -> None:
    time, dues, seen = Time(), [100 + number / 100 for number in range(50)], []
    for due, _late in on_time(dues, clock=time, idle=time.idle):
        time.now += 1.0
        seen.append(due)
    assert seen == dues
