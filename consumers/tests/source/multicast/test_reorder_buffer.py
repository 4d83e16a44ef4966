"""One partition of a channel: whatever is lost or doubled, each record comes once, in order."""

import random

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from nightwire.consumers.source.multicast.reorder_buffer import (
    MAX_BUFFERED,
    SILENCE,
    BufferedRange,
    ReorderBuffer,
)
from nightwire.core.datagrams import Beat, Datagram


def datagram(offset: int, previous: int, epoch: int = 1) -> Datagram:
    """Return a record's datagram."""
    return Datagram(0, 1, 0, epoch, offset, previous, 0, 0, 1, b"")


def receive(one: ReorderBuffer, offset: int, previous: int, epoch: int = 1) -> str | None:
    """Let *one* hear a record; return why it is dropped."""
    found = datagram(offset, previous, epoch)
    if (wrong := one.admit(found, offset, 0.0)) is None:
        one.insert(offset, BufferedRange(previous, offset, [message(offset)], 1))
    return wrong


def message(offset: int) -> Message:
    """Return a record."""
    return Message(topic="t", partition=0, offset=offset)


def gap(one: ReorderBuffer) -> range:
    """Return the first gap."""
    return next(one.gaps(), range(0))


def offsets(one: ReorderBuffer) -> list[int]:
    """Return what is ready."""
    return [message.offset() or 0 for messages, _ in one.ready() for message in messages]


@given(st.sets(st.integers(0, 60)), st.integers(0, 10_000), st.integers(0, 20))
def test_what_is_ready_and_what_is_fetched_are_all_records_in_order(
    sent: set[int], seed: int, begin: int
) -> None:
    """Some datagrams are lost, some come twice, neighbours change places; Kafka has them all."""
    rng, one, got = random.Random(seed), ReorderBuffer(begin), []
    ordered = sorted(sent)
    received = [
        (offset, ordered[at - 1] if at else -1)
        for at, offset in enumerate(ordered)
        for _ in range(rng.choice([0, 1, 1, 2]))
    ]
    for at in range(0, len(received) - 1, 2):
        if rng.random() < 0.3:
            received[at], received[at + 1] = received[at + 1], received[at]
    for offset, previous in received:
        receive(one, offset, previous)
        got += offsets(one)
        for missing in [*one.gaps()]:
            one.fill(missing, [message(found) for found in ordered if found in missing])  # by Kafka
        got += offsets(one)
    if ordered:
        one.note_heartbeat(Beat(0, 1, ordered[-1]), 1, 1, 0.0)
        got += [found for found in ordered if found in gap(one)]
    assert got == [offset for offset in ordered if offset >= begin]


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 10_000), st.integers(0, 20))
def test_packs_of_two_channels_that_overlap_hand_out_each_record_once(
    sent: set[int], seed: int, begin: int
) -> None:
    """As when one channel is left for another, narrower one: what only the first has may come."""
    rng, one, got = random.Random(seed), ReorderBuffer(begin), list[int]()
    narrow = sorted(offset for offset in sent if rng.random() < 0.7)
    received = [pack for of in (sorted(sent), narrow) for pack in packs(rng, of) if rng.random() < 0.8]
    rng.shuffle(received)
    for previous, pack in received:
        if one.admit(datagram(pack[0], previous), pack[-1], 0.0) is None:
            one.insert(pack[0], BufferedRange(previous, pack[-1], [*map(message, pack)], 1))
        for missing in [*one.gaps()]:
            one.fill(missing, [message(found) for found in narrow if found in missing])
        got += offsets(one)
    one.note_heartbeat(Beat(0, 1, max(sent), 99), 1, 1, 0.0)
    for missing in [*one.gaps()]:
        one.fill(missing, [message(found) for found in narrow if found in missing])
    got += offsets(one)
    assert got == sorted(set(got))
    assert {*narrow} & {*range(begin, 99)} <= {*got} <= sent
    assert one.next == 100


def packs(rng: random.Random, ordered: list[int]) -> list[tuple[int, list[int]]]:
    """Return *ordered* in packs of any length, each with the offset before it."""
    found, at = list[tuple[int, list[int]]](), 0
    while at < len(ordered):
        end = at + rng.randint(1, 8)
        found.append((ordered[at - 1] if at else -1, ordered[at:end]))
        at = end
    return found


def test_a_loss_of_the_last_is_told_by_the_heartbeat() -> None:
    one = ReorderBuffer(5)
    assert one.note_heartbeat(Beat(0, 1, 7), 1, 1000, 0.0) is None
    assert gap(one) == range(5, 8)


def test_what_was_looked_at_and_not_sent_is_no_gap() -> None:
    one = ReorderBuffer(5)
    one.note_heartbeat(Beat(0, 1, 4, 90), 1, 1000, 0.0)
    assert offsets(one) == []
    assert one.next == 91


def test_a_heartbeat_that_is_played_again_keeps_nobody_alive() -> None:
    one = ReorderBuffer(0)
    one.note_heartbeat(Beat(0, 1, -1), 1, 1000, 0.0)
    assert one.note_heartbeat(Beat(0, 1, -1), 1, 1000, 10.0) == "replayed"
    assert one.is_silent(SILENCE + 0.1)


def test_who_tells_only_of_what_lies_before_is_received_and_behind() -> None:
    one = ReorderBuffer(100)
    one.confirm(0.0)
    one.note_heartbeat(Beat(0, 2, 4, 9), 1, 1000, SILENCE)
    one.add_known(range(90, 99), [], SILENCE)
    assert (one.is_silent(SILENCE + 0.1), one.is_behind(SILENCE + 0.1)) == (False, True)
    one.note_heartbeat(Beat(0, 2, 4, 99), 1, 2000, SILENCE)
    assert not one.is_behind(SILENCE + 0.1)


def test_an_old_epoch_is_dropped_and_a_new_one_goes_on() -> None:
    one = ReorderBuffer(0)
    assert receive(one, 0, -1, epoch=2) is None
    assert receive(one, 1, 0, epoch=1) == "old_epoch"
    assert receive(one, 1, 0, epoch=3) is None
    assert receive(one, 0, -1, epoch=3) == "replayed"
    assert offsets(one) == [0, 1]


def test_after_silence_any_epoch_goes_on() -> None:
    one = ReorderBuffer(0)
    receive(one, 0, -1, epoch=9)
    assert one.admit(datagram(1, 0, epoch=3), 1, SILENCE) == "old_epoch"
    assert one.admit(datagram(1, 0, epoch=3), 1, SILENCE + 0.1) is None


def test_a_place_without_a_record_is_fetched() -> None:
    one = ReorderBuffer(3)
    one.admit(datagram(3, 2), 3, 0.0)
    one.insert(3, BufferedRange(2, 3, None, 0))
    assert (offsets(one), gap(one)) == ([], range(3, 4))


def test_of_a_place_nothing_is_fetched_but_the_record() -> None:
    """What lies between it and the one sent before is not the channel's."""
    one = ReorderBuffer(3)
    one.insert(9, BufferedRange(2, 9, None, 0))
    one.insert(20, BufferedRange(15, 20, None, 0))
    assert [*one.gaps()] == [range(9, 10), range(10, 21)]
    for gap_, found in ((range(9, 10), [9]), (range(10, 21), [15, 20])):
        one.fill(gap_, [*map(message, found)])
    assert offsets(one) == [9, 15, 20]
    assert not [*one.gaps()]


def test_parts_make_a_record_in_any_order_and_only_whole() -> None:
    one, parts = (
        ReorderBuffer(0),
        [datagram(0, -1)._replace(chunk=at, chunks=3, body=b"%d" % at) for at in range(3)],
    )
    assert [one.reassembled(parts[at]) for at in (2, 0, 0)] == [None, None, None]
    assert not gap(one)
    assert one.reassembled(parts[1]) == b"012"


def test_what_is_kept_is_bounded() -> None:
    one = ReorderBuffer(0)
    for offset in range(1, 100):
        one.insert(offset, BufferedRange(offset - 1, offset, [message(offset)], MAX_BUFFERED // 10))
    assert [*one.gaps()] == [range(1), range(10, 100)]  # the last ones went


def test_parts_of_two_epochs_are_not_mixed() -> None:
    one, part = ReorderBuffer(0), datagram(0, -1, epoch=1)
    one.reassembled(part._replace(chunk=0, chunks=3, body=b"a"))
    one.reassembled(part._replace(chunk=2, chunks=3, body=b"c"))
    assert one.reassembled(part._replace(epoch=2, chunk=0, chunks=2, body=b"abc")) is None
    assert one.reassembled(part._replace(epoch=2, chunk=1, chunks=2, body=b"d")) == b"abcd"


def test_a_new_epoch_may_have_a_slower_clock() -> None:
    one = ReorderBuffer(0)
    assert one.note_heartbeat(Beat(0, 1, -1), 1, 5000, 0.0) is None
    assert one.note_heartbeat(Beat(0, 2, -1), 1, 1000, 0.5) is None


def test_places_alone_are_bounded_too() -> None:
    one = ReorderBuffer(0)
    for offset in range(1, 70_000):
        one.insert(offset, BufferedRange(offset - 1, offset, None, 0))
    assert [*one.gaps()][-1] == range(65_537, 70_000)
