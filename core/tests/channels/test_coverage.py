"""What sources say of the offsets that they wrote."""

import pytest

from nightwire.core.channels import MARK, Coverage, CoverageError, coverage_of
from nightwire.core.channels.coverage import WrittenRanges

SAID = bytes.fromhex(
    "0000002a 0000000000000009 0000000000000003 0000000000000005 0000000000000008 000000000000000a"
)


def test_a_header_is_these_bytes() -> None:
    said = Coverage(42, 9, (range(3, 5), range(8, 10)))
    assert said.encoded() == SAID
    assert coverage_of(SAID) == said
    assert coverage_of(Coverage(42, MARK, ()).encoded()) == (42, MARK, ())


@pytest.mark.parametrize("raw", [b"", SAID[:-1], SAID[:12], Coverage(1, 9, (range(8),)).encoded()])
def test_a_header_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(CoverageError):
        coverage_of(raw)


def runs(*offsets: int) -> WrittenRanges:
    """Return what a source knows that wrote *offsets*."""
    one = WrittenRanges()
    for offset in offsets:
        one.add(offset)
    return one


def test_a_channel_is_told_each_offset_once() -> None:
    one = runs(3, 4, 7, 8)
    assert one.take_unreported(1) == (range(3, 5), range(7, 9))
    one.add(9)
    assert one.take_unreported(1) == (range(9, 10),)
    assert one.take_unreported(2) == (range(3, 5), range(7, 10))
    assert one.take_unreported(1) == ()


def test_what_was_told_goes_on_and_is_not_told_again() -> None:
    one = runs(3, 4)
    one.take_unreported(1)
    one.drop_reported()
    one.add(5)
    one.add(9)
    assert one.take_unreported(1) == (range(5, 6), range(9, 10))


def test_the_end_of_an_own_transaction_is_vouched_for_and_nothing_else_is() -> None:
    one = runs(3)
    one.transaction_ended()
    one.add(5)
    one.transaction_ended()
    one.transaction_ended()  # of others' partitions
    one.add(7)
    one.transaction_ended()
    one.add(10)  # what lies between is somebody else's too
    assert one.take_unreported(1) == (range(3, 8), range(10, 11))


def test_a_topic_that_was_made_anew_begins_anew() -> None:
    one = runs(30, 31)
    one.take_unreported(1)
    one.add(0)
    assert one.take_unreported(1) == (range(1),)
