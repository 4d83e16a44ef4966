"""Records of a topic packed into datagrams.  Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from confluent_kafka import Message

from nightwire.core.datagrams import (
    ENTRY,
    HEARTBEAT,
    LITE,
    PACKED,
    POINTER,
    Beat,
    Channel,
    Datagram,
    Entry,
    encode,
    encode_beats,
    encode_pack,
    encode_record,
    packs,
    room_in,
    split,
)

BEATS_AT_ONCE = 80
"""Most partitions of one heartbeat."""


class Packer:
    """Packs records of a channel into datagrams.

    Args:
        channel: The channel.
        max_datagram: Longest datagram. [byte]
        lite: Returns an alert's lite form; None where it has none.
    """

    def __init__(
        self, channel: Channel, max_datagram: int, lite: Callable[[bytes], bytes | None] = lambda _value: None
    ) -> None:
        self.channel, self._max_datagram, self._lite = channel, max_datagram, lite
        self.forms: Counter[str] = Counter()

    def entries(self, messages: Sequence[Message], previous: int) -> list[Entry]:
        """Return the entries of *messages*: whole where they fit, else lite, or as pointers.

        Args:
            messages: Records of one partition, in order.
            previous: The offset sent before them.

        Raises:
            RegistryAwayError: The registry does not answer for the lite form's schema.
        """
        befores = [previous, *(one.offset() or 0 for one in messages)]
        return [
            self._entry(message, gap=offset != before + 1)
            for message, (before, offset) in zip(messages, pairwise(befores), strict=True)
        ]

    def datagrams(
        self, entries: Sequence[Entry], partition: int, epoch: int, previous: int
    ) -> Iterator[bytes]:
        """Yield the datagrams of *entries* of a partition; small ones share a datagram.

        Args:
            entries: At least one, in order.
            partition: Its number.
            epoch: Of the relay.
            previous: The offset sent before them.
        """
        secret, signed = self.channel.secret, bool(self.channel.keys)
        for pack in self._packs(entries, room_in(self._max_datagram, signed=signed)):
            first = pack[0]
            one = Datagram(
                first.flags, self.channel.number, partition, epoch, first.offset, previous,
                first.time, 0, 1, first.body,
            )  # fmt: skip
            if len(pack) > 1:
                yield encode(one._replace(flags=PACKED, body=encode_pack(pack)), secret)
            else:
                for part in split(one, self._max_datagram, signed=signed):
                    yield encode(part, secret)
            previous = pack[-1].offset

    def heartbeats(self, beats: Sequence[Beat], now_ms: int) -> Iterator[bytes]:
        """Yield the heartbeats of *beats*; without any, an empty one."""
        secret = self.channel.secret
        for begin in range(0, max(1, len(beats)), BEATS_AT_ONCE):
            body = encode_beats(beats[begin : begin + BEATS_AT_ONCE])
            one = Datagram(HEARTBEAT, self.channel.number, 0, 0, 0, -1, now_ms, 0, 1, body)
            yield encode(one, secret)

    @staticmethod
    def _packs(entries: Sequence[Entry], room: int) -> Iterator[Sequence[Entry]]:
        """Yield *entries* in groups, each of which fits into a datagram."""
        pack, size = list[Entry](), 0
        for one in entries:
            length = ENTRY.size + len(one.body)
            if pack and not (size + length <= room and packs(pack[-1], ()) and packs(one, pack)):
                yield pack
                pack, size = [], 0
            pack.append(one)
            size += length
        yield pack

    def _entry(self, message: Message, *, gap: bool) -> Entry:
        value, full, signed = message.value(), self.channel.full, bool(self.channel.keys)
        room = room_in(self._max_datagram, signed=signed, gap=gap)
        form, encoded = "whole", _record(message, value)
        if full and len(encoded[1]) > room:
            form, room = "chunked", room_in(self._max_datagram, signed=signed, parts=True)
        if not full and len(encoded[1]) > room and value and (lite := self._lite(value)) is not None:
            flags, body = _record(message, lite)
            form, encoded = "lite", (flags | LITE, body)
        if encoded[0] & POINTER or len(encoded[1]) > room:
            form, encoded = "pointer", (POINTER, b"")
        self.forms[form] += 1
        return Entry(message.offset() or 0, max(0, message.timestamp()[1]), *encoded)


def _record(message: Message, value: bytes | None) -> tuple[int, bytes]:
    """Return flags and body of a record with *value*; a pointer where it cannot be encoded."""
    pairs: Any = message.headers()
    headers = [(name, _bytes(content)) for name, content in pairs] if pairs else ()
    try:
        return encode_record(message.key(), headers, value)
    except ValueError:
        return POINTER, b""


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
