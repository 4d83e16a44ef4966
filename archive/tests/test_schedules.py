"""The four schedules: when records are taken, and of which partitions."""

from nightwire.archive.writing import SCHEDULES
from nightwire.archive.writing.schedules import UNBOUNDED, InOrder, LiveStream, RateLimit, StateAware

ONE, TWO, THREE = (("alerts.sim", number) for number in range(3))


def test_a_constant_drain_takes_all_at_once() -> None:
    schedule = SCHEDULES["constant"](0)
    assert schedule.grant(0.0, LiveStream(moved=0.0)) == UNBOUNDED
    assert schedule.turn({ONE: 5, TWO: 0}) == [ONE, TWO]


def test_a_rate_is_kept_over_any_time() -> None:
    schedule, taken = RateLimit(1000), 0
    for tick in range(100):
        while (left := schedule.grant(tick * 0.1, LiveStream())) > 0:
            schedule.took(min(left, 300))
            taken += min(left, 300)
    assert taken == 1000 + 9900
    schedule.took(5000)  # a record longer than what is left is paid for afterwards
    assert [schedule.grant(9.9 + s, LiveStream()) > 0 for s in (1, 4, 5.5)] == [False, False, True]


def test_between_visits_is_when_nobody_has_written_for_a_while() -> None:
    schedule = StateAware(quiet=1.0, longest=60.0)
    assert schedule.grant(10.5, LiveStream(moved=10.0)) == 0
    assert schedule.grant(11.0, LiveStream(moved=10.0)) == UNBOUNDED
    assert schedule.grant(10.5, LiveStream(moved=10.4, waiting=-50.0)) == UNBOUNDED  # for too long
    assert schedule.grant(0.0, LiveStream()) == UNBOUNDED


def test_in_order_one_partition_is_emptied_after_the_other() -> None:
    schedule = InOrder()
    assert schedule.turn({THREE: 4, ONE: 3, TWO: 0}) == [ONE]
    assert schedule.turn({THREE: 4, ONE: 1, TWO: 9}) == [ONE]
    assert schedule.turn({THREE: 4, ONE: 0, TWO: 9}) == [TWO]
    assert schedule.turn({THREE: 4, ONE: 7, TWO: 0}) == [THREE]
    assert schedule.turn({THREE: 0, ONE: 7, TWO: 0}) == [ONE]
    assert schedule.turn({THREE: 1, TWO: 2}) == [TWO]  # the first went to another member
