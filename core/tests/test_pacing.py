"""The pacing is open loop: what is late is late by its schedule."""

from nightwire.core.pacing import Lateness, on_time


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
