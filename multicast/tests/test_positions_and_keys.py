"""Where a relay goes on, how it is paced, and which keys sign."""

from nightwire.core.datagrams import Channel
from nightwire.multicast.announcement import ROTATION, with_keys
from nightwire.multicast.group_sender import BURST, TokenBucket
from nightwire.multicast.positions import Position, resume

CHANNEL = Channel("alerts.sim", "239.1.1.1:5000")


def test_a_relay_that_was_never_here_begins_live() -> None:
    assert resume(-1001, None, 3, 40, first=77) == (Position(77, 40, 39), 0)


def test_who_takes_over_has_the_next_epoch_and_knows_what_was_sent() -> None:
    left = Position(7, 20, 12)
    assert resume(left.next, left.metadata, 0, 40, first=77) == (Position(8, 20, 12), 0)
    assert resume(left.next, Position(65535, 20, 12).metadata, 0, 40, first=77)[0].epoch == 0


def test_what_expired_is_counted() -> None:
    assert resume(20, Position(7, 20, 19).metadata, 30, 40, first=77) == (Position(8, 30, 19), 10)


def test_left_out_records_do_not_move_what_was_sent() -> None:
    assert Position(1, 5, 4).after(5, was_sent=False).after(6, was_sent=True) == Position(1, 7, 6)
    assert Position(1, 5, 4).after(5, was_sent=False) == Position(1, 6, 4)


def test_a_second_relay_signs_as_the_first_until_the_key_has_served() -> None:
    first = with_keys(CHANNEL, None, 1000)
    assert with_keys(CHANNEL, first, 1000 + ROTATION - 1).keys == first.keys
    later = with_keys(CHANNEL, first, 1000 + ROTATION)
    assert later.keys[1:] == first.keys
    assert with_keys(CHANNEL, later, 1000 + 2 * ROTATION).keys[1:] == later.keys[:1]
    assert first.keys[0].hex() not in repr(first)


def test_a_bucket_lets_a_burst_through_and_then_keeps_the_rate() -> None:
    now = [0.0]
    bucket = TokenBucket(1000.0, clock=lambda: now[0])
    assert bucket.take(BURST) == 0.0
    assert bucket.take(500) == 0.5
    now[0] = 0.5
    assert bucket.take(0) == 0.0
