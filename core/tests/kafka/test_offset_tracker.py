"""Reading goes on at the least offset that is unfinished, whatever the order in which work ends."""

from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.kafka import OffsetTracker

SOURCE, OTHER = ("voevents", 0), ("voevents", 1)


@given(st.lists(st.booleans(), max_size=40), st.randoms(use_true_random=False), st.integers(0, 3))
def test_the_position_is_the_least_unfinished_offset(begins: list[bool], chance: object, first: int) -> None:
    tracker = OffsetTracker({SOURCE: first, OTHER: 9})
    unfinished: list[int] = []
    for offset, begun in enumerate(begins, first):
        if begun:
            tracker.began(SOURCE, offset)
            unfinished.append(offset)
        else:
            tracker.passed(SOURCE, offset)
    end = first + len(begins)
    chance.shuffle(unfinished)  # type: ignore[attr-defined]
    while unfinished:
        assert tracker.positions == {SOURCE: min(unfinished), OTHER: 9}
        tracker.finished(SOURCE, unfinished.pop())
    assert tracker.positions == tracker.next == {SOURCE: end, OTHER: 9}


def test_a_reader_that_goes_back_goes_on_there() -> None:
    tracker = OffsetTracker({SOURCE: 10})
    tracker.began(SOURCE, 10)
    tracker.seek({SOURCE: 3})
    assert tracker.positions == {SOURCE: 3}
    tracker.passed(SOURCE, 3)
    assert tracker.positions == {SOURCE: 4}
