"""Records become datagrams: whole, lite, in parts, or their place alone."""

from confluent_kafka import Message

from nightwire.core.datagrams import (
    LITE,
    POINTER,
    Beat,
    Channel,
    check,
    decode,
    decode_beats,
    decode_record,
)
from nightwire.multicast.packing import Packer

CHANNEL = Channel("alerts.sim", "239.1.1.1:5000")


def message(size: int, headers: int = 1) -> Message:
    """Return a record."""
    pairs: list[tuple[str, str | bytes | None]] = [("survey", b"sim")] * headers
    return Message(
        topic="alerts.sim",
        partition=2,
        offset=9,
        key=b"k",
        value=bytes(size),
        headers=pairs,
        timestamp=(1, 5),
    )


def test_what_fits_goes_as_it_is() -> None:
    packer = Packer(CHANNEL, 1472)
    (raw,) = packer.datagrams(message(1000), epoch=4, previous=7)
    one = decode(raw)
    assert (one.partition, one.offset, one.previous, one.epoch, one.time) == (2, 9, 7, 4, 5)
    assert decode_record(one.flags, one.body) == (b"k", [("survey", b"sim")], bytes(1000))


def test_what_does_not_goes_lite() -> None:
    packer = Packer(CHANNEL, 1472, lite=lambda value: value[:500])
    (raw,) = packer.datagrams(message(100_000), 1, 8)
    assert decode(raw).flags & LITE
    assert decode_record(decode(raw).flags, decode(raw).body)[2] == bytes(500)


def test_what_is_too_long_even_so_is_named_by_its_place() -> None:
    for lite in (lambda value: value[:2000], lambda _value: None):
        (raw,) = Packer(CHANNEL, 1472, lite=lite).datagrams(message(100_000), 1, 8)
        assert (decode(raw).flags, decode(raw).offset, decode(raw).body) == (POINTER, 9, b"")


def test_headers_that_cannot_be_told_leave_the_place() -> None:
    (raw,) = Packer(CHANNEL, 1472).datagrams(message(10, headers=300), 1, 8)
    assert decode(raw).flags & POINTER


def test_full_alerts_go_in_parts() -> None:
    packer = Packer(Channel("alerts.sim", "239.1.1.1:5000", full=True), 1472)
    parts = [decode(raw) for raw in packer.datagrams(message(136_000), 1, 8)]
    assert decode_record(parts[0].flags, b"".join(one.body for one in parts))[2] == bytes(136_000)
    assert packer.forms == {"chunked": 1}


def test_all_is_signed_where_there_is_a_key() -> None:
    channel = Channel("alerts.sim", "239.1.1.1:5000", keys=(b"x" * 32,))
    packer = Packer(channel, 1472)
    for raw in [*packer.datagrams(message(1400), 1, 8), *packer.heartbeats([Beat(0, 1, 2)], 77)]:
        assert check(raw, decode(raw), channel.secrets) is None


def test_heartbeats_tell_of_many_partitions() -> None:
    beats = [Beat(number, 1, number) for number in range(250)]
    raws = list(Packer(CHANNEL, 1472).heartbeats(beats, 1))
    assert [beat for raw in raws for beat in decode_beats(decode(raw).body)] == beats
    assert max(map(len, raws)) <= 1472
