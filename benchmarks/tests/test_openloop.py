"""The schedule of the open loop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.benchmarks._openloop import Pacer, Schedule

rates = st.floats(0.5, 5000)


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def idle(self, seconds: float) -> None:
        self.now += seconds


@given(rates, st.integers(1, 500))
def test_as_many_are_due_as_the_rate_says(rate: float, count: int) -> None:
    schedule = Schedule(10.0, rate, count)
    for number in (0, count // 2, count - 1):
        assert schedule.due_by(schedule.due(number)) == number + 1
    assert schedule.due_by(9.99) == 0
    assert schedule.due_by(1e9) == count


@given(rates)
def test_a_generator_that_keeps_up_sends_each_alert_when_it_is_due(rate: float) -> None:
    clock = Clock()
    pacer = Pacer(Schedule(1.0, rate, 20), clock, clock.idle)
    for _number, due in pacer:
        assert clock() == pytest.approx(due)
    assert pacer.behind == pytest.approx(0.0, abs=1e-9)


def test_a_stall_is_counted_for_every_alert_that_was_due_meanwhile() -> None:
    clock = Clock()
    pacer, delays = Pacer(Schedule(0.0, 10.0, 8), clock, clock.idle), []
    for number, due in pacer:
        if number == 2:
            clock.now += 0.35  # alerts 3, 4 and 5 become due in this time
        delays.append(clock() - due)
    assert delays == pytest.approx([0, 0, 0.35, 0.25, 0.15, 0.05, 0, 0])
    assert pacer.behind == pytest.approx(0.25)


def test_the_schedule_is_never_moved() -> None:
    clock = Clock()
    dues = []
    for _number, due in Pacer(Schedule(0.0, 100.0, 50), clock, clock.idle):
        clock.now += 1.0  # hopelessly slow
        dues.append(due)
    assert dues == pytest.approx([number / 100 for number in range(50)])


def test_an_idler_that_returns_early_is_asked_again() -> None:
    clock = Clock()
    asked = []

    def short(seconds: float) -> None:
        asked.append(seconds)
        clock.now += seconds if seconds < 1e-3 else seconds / 2

    list(Pacer(Schedule(1.0, 1.0, 1), clock, short))
    assert len(asked) > 5
    assert clock() == pytest.approx(1.0)
