"""Pauses that grow, and messages that are not repeated."""

from itertools import count

from nightwire.core.runtime import Backoff, LogLimiter


def test_pauses_double_up_to_the_longest_and_begin_again() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    assert backoff.next() == 0.5


def test_pauses_are_spread() -> None:
    backoff = Backoff(1.0, 1.0, spread=(0.8, 1.2))
    pauses = {backoff.next() for _ in range(50)}
    assert len(pauses) > 1
    assert all(0.8 <= pause <= 1.2 for pause in pauses)


def test_each_kind_is_logged_once_in_an_interval() -> None:
    clock = count(0, 25).__next__
    limiter = LogLimiter(60.0, clock=clock)
    assert [limiter.allows("away") for _ in range(4)] == [True, False, False, True]
    assert limiter.allows("full")
