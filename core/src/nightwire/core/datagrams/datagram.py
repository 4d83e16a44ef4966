"""Datagrams of a multicast channel: records of a topic, a part of one, or a heartbeat.  Pure.

Big-endian, and small: 22 bytes before a record that has neither key nor headers, so that one of
1,450 bytes still fits into a frame of Ethernet::

    version  flags  channel  partition  epoch  offset    time [ms]
    u8       u8     u32      u16        u16    u48       u48
    GAP:     previous u48       the offset before this one in the channel; without it offset - 1
    CHUNKED: chunk u16, chunks u16
    body                        of a record, of a part of one, of several, of a heartbeat
    SIGNED:  key u32, tag 16 B  the first half of HMAC-SHA256 of all before the tag

A record's body is its value; with key or headers these come first.  Several records of a partition
are PACKED: each with its flags u8, how far its offset u16 lies after that of the one sent before it
and its time i32 after the first one's, its length u16 and its body; offset, previous and time are
the first one's.  A heartbeat's body is, for each partition, its number u16, epoch u16, the last
offset sent and the last one looked at, both u48 and counted from 1.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

VERSION = 0xA8
"""First byte of every datagram; 0xA7 had neither packs nor how far a relay has looked."""
SIGNED, CHUNKED, LITE, POINTER, GAP, HEARTBEAT, BARE, NULL = (1 << bit for bit in range(8))
"""Flags.  LITE: the value lacks stamps and history; POINTER: there is no value, fetch the record
from Kafka; BARE: neither key nor headers; NULL: the record has no value."""
PACKED = CHUNKED | HEARTBEAT
"""Two bits tell the kind: one whole record, a part of one, a heartbeat, or several records."""

HEADER = struct.Struct(">BBIHHHIHI")
PREVIOUS = struct.Struct(">HI")
CHUNK = struct.Struct(">HH")
BEAT = struct.Struct(">HHHIHI")
ENTRY = struct.Struct(">BHiH")
KEY = struct.Struct(">I")
TAG = 16
"""Length of a signature. [byte]"""
TRAILER = KEY.size + TAG
MAX_CHUNKS = 1 << 13
"""Most parts of a record: 8,192, 11 MB."""
LONGEST = 1 << 16
"""Longest datagram that UDP has. [byte]"""
MTU_PAYLOAD = 1472
"""Longest datagram in one frame of Ethernet: 1,500 without the headers of IP and UDP. [byte]"""
HEARTBEAT_INTERVAL = 0.5
"""Time between a relay's heartbeats. [s]"""
LITE_HEADER = "lite"
"""Header of a record that came without stamps and history: Kafka has it whole at its offset."""
ABSENT = 0xFFFF
"""In place of a length: there is none."""

Headers = Sequence[tuple[str, bytes | None]]


class RefusedDatagramError(Exception):
    """A datagram is not believed; `reason` says why.

    It is ``foreign``, ``malformed``, ``unsigned``, of an ``unknown_key``, or ``forged``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Datagram(NamedTuple):
    """One datagram.

    Attributes:
        flags: Of those above.
        channel: Hash of what the channel carries.
        partition: Of the record.
        epoch: Of the sender: who takes a partition over has the next one, modulo 65,536.
        offset: Of the record.
        previous: The offset sent before it in this channel and partition.
        time: When the record was written; of a heartbeat, when it was sent. [ms since 1970, UTC]
        chunk: Which part of the record, from 0.
        chunks: How many parts it has.
        body: What it carries.
    """

    flags: int
    channel: int
    partition: int
    epoch: int
    offset: int
    previous: int
    time: int
    chunk: int
    chunks: int
    body: bytes

    @property
    def kind(self) -> int:
        """Which of `CHUNKED`, `HEARTBEAT` and `PACKED` it is; 0 for a whole record."""
        return self.flags & PACKED


class Beat(NamedTuple):
    """What a heartbeat says of a partition.

    Attributes:
        partition: Its number.
        epoch: The sender's.
        last: The last offset that was sent.
        done: The last offset that was looked at: nothing between *last* and it is the channel's.
    """

    partition: int
    epoch: int
    last: int
    done: int = -1


class Entry(NamedTuple):
    """A record of a pack; its times [ms] and offsets are absolute."""

    offset: int
    time: int
    flags: int
    body: bytes


class Secret(NamedTuple):
    """A channel's secret, and the number by which datagrams name it."""

    number: int
    key: bytes

    def __repr__(self) -> str:
        return f"Secret(number={self.number})"

    @classmethod
    def of(cls, key: bytes) -> "Secret":
        """Return *key* with its number, which is its hash's beginning."""
        return cls(int.from_bytes(hashlib.sha256(key).digest()[:4], "big"), key)


def encode(one: Datagram, secret: Secret | None = None) -> bytes:
    """Return *one* as it travels, signed where there is a *secret*."""
    flags = one.flags & ~(GAP | SIGNED) | (SIGNED if secret else 0)
    flags |= GAP if one.previous != one.offset - 1 else 0
    parts = [
        HEADER.pack(
            VERSION, flags, one.channel, one.partition, one.epoch, *_u48(one.offset), *_u48(one.time)
        ),
        PREVIOUS.pack(*_u48(one.previous + 1)) if flags & GAP else b"",  # before the first there is -1
        CHUNK.pack(one.chunk, one.chunks) if one.kind == CHUNKED else b"",
        one.body,
    ]
    if secret is None:
        return b"".join(parts)
    signed = b"".join([*parts, KEY.pack(secret.number)])
    return signed + signature(signed, secret.key)


def decode(raw: bytes) -> Datagram:
    """Return the datagram in *raw*; its signature is not looked at.

    Raises:
        RefusedDatagramError: There is none.
    """
    try:
        return _decoded(raw)
    except struct.error as error:
        raise RefusedDatagramError("malformed" if raw[:1] == bytes([VERSION]) else "foreign") from error


def _decoded(raw: bytes) -> Datagram:
    version, flags, channel, partition, epoch, high, low, time_high, time_low = HEADER.unpack_from(raw)
    if version != VERSION:
        raise RefusedDatagramError("foreign")
    at, end = HEADER.size, len(raw) - (TRAILER if flags & SIGNED else 0)
    offset = high << 32 | low
    previous, chunk, chunks = offset - 1, 0, 1
    if flags & GAP:
        before, after = PREVIOUS.unpack_from(raw, at)
        previous, at = (before << 32 | after) - 1, at + PREVIOUS.size
    if flags & PACKED == CHUNKED:
        chunk, chunks = CHUNK.unpack_from(raw, at)
        at += CHUNK.size
    if at > end or previous >= offset or not chunk < chunks <= MAX_CHUNKS:
        raise RefusedDatagramError("malformed")
    time = time_high << 32 | time_low
    return Datagram(flags, channel, partition, epoch, offset, previous, time, chunk, chunks, raw[at:end])


def signer(raw: bytes) -> int | None:
    """Return the number of the key that signed *raw*, which `decode` took; None: it is unsigned."""
    return KEY.unpack_from(raw, len(raw) - TRAILER)[0] if raw[1] & SIGNED else None


def is_genuine(raw: bytes, key: bytes) -> bool:
    """Return whether *key* signed *raw*."""
    return hmac.compare_digest(raw[-TAG:], signature(raw[:-TAG], key))


def signature(signed: bytes, key: bytes) -> bytes:
    """Return the signature of *signed* by *key*."""
    return hmac.digest(key, signed, "sha256")[:TAG]


def encode_beats(beats: Sequence[Beat]) -> bytes:
    """Return the body of a heartbeat."""
    return b"".join(
        BEAT.pack(one.partition, one.epoch, *_u48(one.last + 1), *_u48(one.done + 1)) for one in beats
    )


def decode_beats(body: bytes) -> Iterator[Beat]:
    """Yield what a heartbeat says of each partition.

    Raises:
        RefusedDatagramError: The *body* is none of a heartbeat.
    """
    if len(body) % BEAT.size:
        raise RefusedDatagramError("malformed")
    for partition, epoch, high, low, done_high, done_low in BEAT.iter_unpack(body):
        yield Beat(partition, epoch, (high << 32 | low) - 1, (done_high << 32 | done_low) - 1)


def encode_pack(entries: Sequence[Entry]) -> bytes:
    """Return the body of a pack; `packs` says which *entries* can be in one."""
    parts, before = list[bytes](), entries[0].offset
    for one in entries:
        parts += (
            ENTRY.pack(one.flags, one.offset - before, one.time - entries[0].time, len(one.body)),
            one.body,
        )
        before = one.offset
    return b"".join(parts)


def decode_pack(one: Datagram) -> list[Entry]:
    """Return the records of a pack, at least one, by ascending offsets.

    Raises:
        RefusedDatagramError: There are none.
    """
    found, body, at, offset = list[Entry](), one.body, 0, one.offset
    try:
        while at < len(body):
            flags, step, later, size = ENTRY.unpack_from(body, at)
            at, offset = at + ENTRY.size + size, offset + step
            found.append(Entry(offset, one.time + later, flags, body[at - size : at]))
            if bool(step) != (len(found) > 1):
                raise RefusedDatagramError("malformed")
    except struct.error as error:
        raise RefusedDatagramError("malformed") from error
    if at != len(body) or not found:
        raise RefusedDatagramError("malformed")
    return found


def packs(one: Entry, before: Sequence[Entry]) -> bool:
    """Return whether a pack can hold *one* behind the records *before* it."""
    if one.flags & POINTER or not before:
        return not one.flags & POINTER
    return one.offset - before[-1].offset < 1 << 16 and abs(one.time - before[0].time) < 1 << 31


def room_in(longest: int, *, signed: bool, gap: bool = True, parts: bool = False) -> int:
    """Return how long a record's body may be. [byte]

    Args:
        longest: Longest datagram. [byte]
        signed: Whether it is signed.
        gap: Whether it tells the offset before its own.
        parts: Whether it may go in parts.
    """
    room = longest - HEADER.size - (TRAILER if signed else 0)
    if parts:
        return MAX_CHUNKS * (room - PREVIOUS.size - CHUNK.size)
    return room - (PREVIOUS.size if gap else 0)


def encode_record(key: bytes | None, headers: Headers, value: bytes | None) -> tuple[int, bytes]:
    """Return the flags and the body of a record.

    Raises:
        ValueError: Its key or headers are longer than a datagram can tell.
    """
    flags = 0 if value is not None else NULL
    if key is None and not headers:
        return flags | BARE, value or b""
    try:
        parts = [struct.pack(">HB", ABSENT if key is None else _shorter(key), len(headers)), key or b""]
        for name, content in headers:
            sizes = len(name.encode()), ABSENT if content is None else _shorter(content)
            parts += [struct.pack(">BH", *sizes), name.encode(), content or b""]
    except struct.error as error:
        raise ValueError("key or headers are longer than a datagram can tell") from error
    return flags, b"".join([*parts, value or b""])


def decode_record(
    flags: int, body: bytes
) -> tuple[bytes | None, list[tuple[str, bytes | None]], bytes | None]:
    """Return key, headers and value of the record in *body*.

    Raises:
        RefusedDatagramError: There is none.
    """
    if flags & BARE:
        return None, [], None if flags & NULL else body
    try:
        size, count = struct.unpack_from(">HB", body)
        key, at = _taken(body, 3, size)
        headers = []
        for _ in range(count):
            length, size = struct.unpack_from(">BH", body, at)
            name, at = _taken(body, at + 3, length)
            content, at = _taken(body, at, size)
            headers.append(((name or b"").decode(), content))
    except (struct.error, UnicodeDecodeError) as error:
        raise RefusedDatagramError("malformed") from error
    return key, headers, None if flags & NULL else body[at:]


def split(one: Datagram, longest: int, *, signed: bool) -> Iterator[Datagram]:
    """Yield *one*, in as many parts as datagrams of at most *longest* bytes take.

    Raises:
        ValueError: There are more than `MAX_CHUNKS`.
    """
    if len(one.body) <= room_in(longest, signed=signed, gap=one.previous != one.offset - 1):
        yield one
        return
    room = room_in(longest, signed=signed) - CHUNK.size
    parts = -(-len(one.body) // room)
    if parts > MAX_CHUNKS:
        raise ValueError(f"{len(one.body)} bytes take {parts} datagrams, the limit is {MAX_CHUNKS}")
    for number in range(parts):
        body = one.body[number * room : (number + 1) * room]
        yield one._replace(flags=one.flags | CHUNKED, chunk=number, chunks=parts, body=body)


def is_newer(epoch: int, than: int) -> bool:
    """Return whether *epoch* comes after another one; they are counted modulo 65,536."""
    return 0 < (epoch - than) % (1 << 16) < 1 << 15


def channel_number(topic: str, group: str, condition: str) -> int:
    """Return the hash by which datagrams name the channel of *topic* on *group*."""
    named = "\0".join((topic, group, condition)).encode()
    return int.from_bytes(hashlib.sha256(named).digest()[:4], "big")


def check(raw: bytes, one: Datagram, secrets: Mapping[int, bytes]) -> str | None:
    """Return why *raw*, which holds *one*, is not to be believed; None where it is.

    Args:
        raw: A datagram.
        one: The same, decoded.
        secrets: The channel's keys, by number; none where datagrams are not signed.
    """
    if not secrets:
        return None
    number = signer(raw)
    if number is None:
        return "unsigned"
    if number not in secrets:
        return "unknown_key"
    return None if is_genuine(raw, secrets[number]) else "forged"


def _u48(number: int) -> tuple[int, int]:
    return number >> 32, number & 0xFFFFFFFF


def _shorter(content: bytes) -> int:
    if len(content) >= ABSENT:
        raise ValueError("key or headers are longer than a datagram can tell")
    return len(content)


def _taken(body: bytes, at: int, size: int) -> tuple[bytes | None, int]:
    if size == ABSENT:
        return None, at
    if at + size > len(body):
        raise RefusedDatagramError("malformed")
    return body[at : at + size], at + size
