"""Records become datagrams: whole, lite, in parts, or their place alone."""

from dataclasses import replace
from itertools import accumulate

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.datagrams import (
    LITE,
    PACKED,
    POINTER,
    Beat,
    Channel,
    Entry,
    check,
    decode,
    decode_beats,
    decode_pack,
    decode_record,
)
from nightwire.multicast.packing import Packer

CHANNEL = Channel("alerts.sim", "239.1.1.1:5000")


def message(size: int, headers: int = 1, offset: int = 9) -> Message:
    """Return a record."""
    pairs: list[tuple[str, str | bytes | None]] = [("survey", b"sim")] * headers
    return Message(
        topic="alerts.sim",
        partition=2,
        offset=offset,
        key=b"k",
        value=bytes(size),
        headers=pairs,
        timestamp=(1, 5),
    )


def sent(packer: Packer, *messages: Message, epoch: int = 1, previous: int = 8) -> list[bytes]:
    """Return the datagrams of records."""
    return [*packer.datagrams(packer.entries(messages, previous), 2, epoch, previous)]


def test_what_fits_goes_as_it_is() -> None:
    packer = Packer(CHANNEL, 1472)
    (raw,) = sent(packer, message(1000), epoch=4, previous=7)
    one = decode(raw)
    assert (one.partition, one.offset, one.previous, one.epoch, one.time) == (2, 9, 7, 4, 5)
    assert decode_record(one.flags, one.body) == (b"k", [("survey", b"sim")], bytes(1000))


def test_what_does_not_goes_lite() -> None:
    packer = Packer(CHANNEL, 1472, lite=lambda value: value[:500])
    (raw,) = sent(packer, message(100_000))
    assert decode(raw).flags & LITE
    assert decode_record(decode(raw).flags, decode(raw).body)[2] == bytes(500)


def test_what_is_too_long_even_so_is_named_by_its_place() -> None:
    for lite in (lambda value: value[:2000], lambda _value: None):
        (raw,) = sent(Packer(CHANNEL, 1472, lite=lite), message(100_000))
        assert (decode(raw).flags, decode(raw).offset, decode(raw).body) == (POINTER, 9, b"")


def test_headers_that_cannot_be_told_leave_the_place() -> None:
    (raw,) = sent(Packer(CHANNEL, 1472), message(10, headers=300))
    assert decode(raw).flags & POINTER


def test_full_alerts_go_in_parts() -> None:
    packer = Packer(Channel("alerts.sim", "239.1.1.1:5000", full=True), 1472)
    parts = [decode(raw) for raw in sent(packer, message(136_000))]
    assert decode_record(parts[0].flags, b"".join(one.body for one in parts))[2] == bytes(136_000)
    assert packer.forms == {"chunked": 1}


@given(
    st.lists(st.tuples(st.integers(1, 70_000), st.sampled_from([10, 100, 1450, 5000])), max_size=60),
    st.booleans(),
)
def test_small_records_share_datagrams_and_all_come_in_order(
    steps: list[tuple[int, int]], signed: bool
) -> None:
    """Each record once, each told with the one before it, no datagram too long."""
    packer = Packer(replace(CHANNEL, keys=(b"x" * 32,) * signed), 1472)
    offsets = [*accumulate((step for step, _ in steps), initial=8)][1:]
    given_ = [message(size, 0, at) for at, (_, size) in zip(offsets, steps, strict=True)]
    raws = sent(packer, *given_) if given_ else []
    befores, found = [8], list[int]()
    for one in map(decode, raws):
        assert one.previous == befores[-1]
        pack = decode_pack(one) if one.kind == PACKED else [Entry(one.offset, one.time, one.flags, one.body)]
        found += [entry.offset for entry in pack]
        befores.append(pack[-1].offset)
        for entry in pack:
            value = given_[offsets.index(entry.offset)].value()
            assert entry.flags & POINTER or decode_record(entry.flags, entry.body) == (b"k", [], value)
    assert found == offsets
    assert max(map(len, raws), default=0) <= 1472


def test_small_records_that_are_there_at_once_take_a_datagram() -> None:
    (raw,) = sent(Packer(CHANNEL, 1472), *(message(100, 0, at) for at in range(9, 21)))
    assert len(decode_pack(decode(raw))) == 12


def test_all_is_signed_where_there_is_a_key() -> None:
    channel = Channel("alerts.sim", "239.1.1.1:5000", keys=(b"x" * 32,))
    packer = Packer(channel, 1472)
    for raw in [*sent(packer, message(1400)), *packer.heartbeats([Beat(0, 1, 2)], 77)]:
        assert check(raw, decode(raw), channel.secrets) is None


def test_heartbeats_tell_of_many_partitions() -> None:
    beats = [Beat(number, 1, number) for number in range(250)]
    raws = list(Packer(CHANNEL, 1472).heartbeats(beats, 1))
    assert [beat for raw in raws for beat in decode_beats(decode(raw).body)] == beats
    assert max(map(len, raws)) <= 1472
