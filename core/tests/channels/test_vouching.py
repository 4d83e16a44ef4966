"""What sources say of the offsets that they wrote."""

import pytest

from nightwire.core.channels import MARK, Vouch, VouchError, vouch_of
from nightwire.core.channels.vouching import Runs

SAID = bytes.fromhex(
    "0000002a 0000000000000009 0000000000000003 0000000000000005 0000000000000008 000000000000000a"
)


def test_a_header_is_these_bytes() -> None:
    said = Vouch(42, 9, (range(3, 5), range(8, 10)))
    assert said.encoded() == SAID
    assert vouch_of(SAID) == said
    assert vouch_of(Vouch(42, MARK, ()).encoded()) == (42, MARK, ())


@pytest.mark.parametrize("raw", [b"", SAID[:-1], SAID[:12], Vouch(1, 9, (range(8),)).encoded()])
def test_a_header_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(VouchError):
        vouch_of(raw)


def runs(*offsets: int) -> Runs:
    """Return what a source knows that wrote *offsets*."""
    one = Runs()
    for offset in offsets:
        one.note(offset)
    return one


def test_a_channel_is_told_each_offset_once() -> None:
    one = runs(3, 4, 7, 8)
    assert one.tell(1) == (range(3, 5), range(7, 9))
    one.note(9)
    assert one.tell(1) == (range(9, 10),)
    assert one.tell(2) == (range(3, 5), range(7, 10))
    assert one.tell(1) == ()


def test_what_was_told_goes_on_and_is_not_told_again() -> None:
    one = runs(3, 4)
    one.tell(1)
    one.forget_told()
    one.note(5)
    one.note(9)
    assert one.tell(1) == (range(5, 6), range(9, 10))


def test_the_end_of_an_own_transaction_is_vouched_for_and_nothing_else_is() -> None:
    one = runs(3)
    one.transaction_ended()
    one.note(5)
    one.transaction_ended()
    one.transaction_ended()  # of others' partitions
    one.note(7)
    one.transaction_ended()
    one.note(10)  # what lies between is somebody else's too
    assert one.tell(1) == (range(3, 8), range(10, 11))


def test_a_topic_that_was_made_anew_begins_anew() -> None:
    one = runs(30, 31)
    one.tell(1)
    one.note(0)
    assert one.tell(1) == (range(1),)
