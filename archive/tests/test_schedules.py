"""The four schedules: when records are taken, and of which partitions."""

from nightwire.archive.writing import SCHEDULES
from nightwire.archive.writing.schedules import UNBOUNDED, InOrder, RateLimit, StateAware, StreamState

ONE, TWO, THREE = (("alerts.sim", number) for number in range(3))


def test_a_constant_drain_takes_all_at_once() -> None:
    schedule = SCHEDULES["constant"](0)
    assert schedule.allowance(0.0, StreamState(last_write=0.0)) == UNBOUNDED
    assert schedule.partitions({ONE: 5, TWO: 0}) == [ONE, TWO]


def test_a_rate_is_kept_over_any_time() -> None:
    schedule, taken = RateLimit(1000), 0
    for tick in range(100):
        while (left := schedule.allowance(tick * 0.1, StreamState())) > 0:
            schedule.consume(min(left, 300))
            taken += min(left, 300)
    assert taken == 1000 + 9900
    schedule.consume(5000)  # a record longer than what is left is paid for afterwards
    assert [schedule.allowance(9.9 + s, StreamState()) > 0 for s in (1, 4, 5.5)] == [False, False, True]


def test_between_visits_is_when_nobody_has_written_for_a_while() -> None:
    schedule = StateAware(quiet=1.0, max_wait=60.0)
    assert schedule.allowance(10.5, StreamState(last_write=10.0)) == 0
    assert schedule.allowance(11.0, StreamState(last_write=10.0)) == UNBOUNDED
    assert (
        schedule.allowance(10.5, StreamState(last_write=10.4, lag_since=-50.0)) == UNBOUNDED
    )  # for too long
    assert schedule.allowance(0.0, StreamState()) == UNBOUNDED


def test_in_order_one_partition_is_emptied_after_the_other() -> None:
    schedule = InOrder()
    assert schedule.partitions({THREE: 4, ONE: 3, TWO: 0}) == [ONE]
    assert schedule.partitions({THREE: 4, ONE: 1, TWO: 9}) == [ONE]
    assert schedule.partitions({THREE: 4, ONE: 0, TWO: 9}) == [TWO]
    assert schedule.partitions({THREE: 4, ONE: 7, TWO: 0}) == [THREE]
    assert schedule.partitions({THREE: 0, ONE: 7, TWO: 0}) == [ONE]
    assert schedule.partitions({THREE: 1, TWO: 2}) == [TWO]  # the first went to another member
