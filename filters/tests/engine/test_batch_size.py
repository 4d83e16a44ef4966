"""How large batches become: they fill their time, and no more."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from nightwire.filters.engine.planner import FIRST, LEAST, TARGET, BatchSizeController


@dataclass
class Clock:
    """A clock that is set by hand. [s]"""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def run(
    pace: BatchSizeController, clock: Clock, batches: int, seconds: float, each: float, backlog: int = 10**6
) -> int:
    """Plan *batches* that take *seconds*, and more for *each* record.

    Return the size of the last one.
    """
    size = 0
    for _ in range(batches):
        limit = pace.limit(10**5)
        assert limit is not None
        size = min(limit, backlog)
        pace.planned(size)
        clock.now += seconds + each * size
    return size


@given(st.floats(0.05, 1.0), st.floats(1e-5, 1e-2))
def test_batches_of_a_backlog_come_to_take_the_target(seconds: float, each: float) -> None:
    clock = Clock()
    size = run(BatchSizeController(clock=clock), clock, 60, seconds, each)
    took = seconds + each * size
    assert took <= 1.5 * TARGET or size == LEAST
    assert took >= 0.4 * TARGET or size == 10**5


def test_the_first_batch_is_small_and_no_batch_is_larger_than_the_operator_allows() -> None:
    pace = BatchSizeController(clock=Clock())
    assert pace.limit(10**5) == FIRST
    pace.planned(FIRST)
    assert pace.limit(200) == 200
    assert pace.limit(None) is None


def test_small_batches_say_nothing_of_large_ones() -> None:
    clock = Clock()
    pace = BatchSizeController(clock=clock)
    run(pace, clock, 50, 0.1, 1e-4, backlog=10)
    assert pace.limit(10**5) == FIRST


def test_slow_batches_shrink_to_a_size_that_still_gets_on() -> None:
    clock = Clock()
    pace = BatchSizeController(clock=clock)
    run(pace, clock, 20, 60.0, 0.0, backlog=10)
    assert pace.limit(10**5) == LEAST
