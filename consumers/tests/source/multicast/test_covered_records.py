"""Headers of several sources; some come late, twice or never: the channel is whole anyway."""

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from nightwire.consumers.source.multicast.reorder_buffer import AWAY, UNCOVERED, ReorderBuffer
from nightwire.core.channels.coverage import WrittenRanges

PATIENCE = 0.5


def record(offset: int) -> Message:
    """Return the record at an offset."""
    return Message(topic="alerts.sim", partition=0, offset=offset, value=b"alert")


def handed(one: ReorderBuffer) -> list[int]:
    """Return the offsets that are handed out now."""
    return [message.offset() or 0 for messages, _ in one.ready() for message in messages]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=60),
    st.data(),
)
def test_each_record_of_the_channel_comes_once_in_order(
    log: list[tuple[int, bool]], data: st.DataObject
) -> None:
    """Of three writers the last is a stranger; marks are sent now and then."""
    said: list[tuple[range, int | None]] = []
    known = [WrittenRanges(), WrittenRanges()]
    for offset, (writer, passes) in enumerate(log):
        if writer > 1:
            continue
        known[writer].add(offset)
        if passes or data.draw(st.integers(0, 4)) == 0:
            ranges = known[writer].take_unreported(1)
            said += [(one, offset if passes and one is ranges[-1] else None) for one in ranges]
    came = data.draw(st.permutations(said))[: data.draw(st.integers(0, len(said)))]
    one, found, now = ReorderBuffer(0, PATIENCE), list[int](), 0.0
    for ranges_, offset_ in [*came, *came[:3]]:
        one.add_known(ranges_, [] if offset_ is None else [record(offset_)], now)
        found += handed(one)
        assert not one.overdue(now)
    one.last, now = len(log) - 1, now + PATIENCE
    for gap in one.overdue(now):  # what nobody spoke of is read from the topic, and judged
        one.fill(gap, [record(at) for at in gap if log[at][1]])
    found += handed(one)
    assert found == [at for at, (_, passes) in enumerate(log) if passes]


def test_a_channel_that_was_left_for_strangers_is_received_again_later() -> None:
    one = ReorderBuffer(0, PATIENCE)
    one.add_known(range(5), [record(4)], 0.0)
    assert handed(one) == [4]
    assert one.connects(0.0)
    verdicts = [one.note_uncovered(0.1 * number) for number in range(UNCOVERED)]
    assert verdicts == [False] * (UNCOVERED - 1) + [True]
    now = 0.1 * (UNCOVERED - 1) + AWAY
    one.confirm(now)
    assert not one.connects(now - 0.1)
    assert one.connects(now)


def test_strangers_who_write_seldom_are_borne() -> None:
    one = ReorderBuffer(0, PATIENCE)
    assert not any(one.note_uncovered(float(number)) for number in range(10 * UNCOVERED))
