"""Who is alive, by the log's own clock."""

from nightwire.directory.model import LogClock, next_holder


def test_time_in_which_kafka_was_away_does_not_count() -> None:
    clock = LogClock(4.0)
    clock.advance(1_000)
    assert clock.advance(3_000) == 2.0
    assert clock.advance(3_600_000) == 6.0


def test_the_clock_never_goes_back() -> None:
    clock = LogClock(4.0)
    clock.advance(5_000)
    assert clock.advance(1_000) == 0.0
    assert clock.advance(6_000) == 1.0


def test_the_first_of_two_keeps_the_name_until_it_is_gone() -> None:
    first, _ = next_holder(None, "one", 0.0, ended=False)
    second, counts = next_holder(first, "two", 2.0, ended=False)
    assert (second.instance, second.rivals, counts) == ("one", 1, False)
    third, counts = next_holder(second, "two", 8.5, ended=False)
    assert (third.instance, third.rivals, counts) == ("two", 0, True)


def test_a_name_is_free_after_a_goodbye() -> None:
    first, _ = next_holder(None, "one", 0.0, ended=True)
    assert next_holder(first, "two", 0.1, ended=False)[1]


def test_a_clock_that_was_set_right_goes_on_from_there() -> None:
    clock = LogClock(3.0)
    clock.advance(86_400_000)
    assert clock.advance(10_000) == 0.0
    assert clock.advance(12_000) == 2.0
