"""From a record of a topic to the datagrams that carry it.  Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from confluent_kafka import Message

from nightwire.core.datagrams import (
    HEARTBEAT,
    LITE,
    POINTER,
    Beat,
    Channel,
    Datagram,
    encode,
    encode_beats,
    encode_record,
    split,
)

BEATS_AT_ONCE = 100
"""Partitions that one heartbeat tells of."""


class Packer:
    """Makes datagrams.

    Args:
        channel: What they belong to.
        longest: Longest datagram. [byte]
        lite: Gives an alert's lite form, None where it has none.
    """

    def __init__(
        self, channel: Channel, longest: int, lite: Callable[[bytes], bytes | None] = lambda _value: None
    ) -> None:
        self.channel, self._longest, self._lite = channel, longest, lite
        self.forms: Counter[str] = Counter()

    def datagrams(self, message: Message, epoch: int, previous: int) -> Iterator[bytes]:
        """Yield what carries *message*: whole where it fits, else lite, or in parts, or its place.

        Args:
            message: The record.
            epoch: The relay's, in its partition.
            previous: The offset that was sent before it.

        Raises:
            RegistryAwayError: The lite form's schema cannot be had.
        """
        bare = Datagram(
            0, self.channel.number, message.partition() or 0, epoch, message.offset() or 0, previous,
            max(0, message.timestamp()[1]), 0, 1, b"",
        )  # fmt: skip
        secret = self.channel.secret
        for one in self._parts(message, bare):
            yield encode(one, secret)

    def heartbeats(self, beats: Sequence[Beat], now_ms: int) -> Iterator[bytes]:
        """Yield the heartbeats that tell of *beats*; without any, one that says the relay lives."""
        secret = self.channel.secret
        for begin in range(0, max(1, len(beats)), BEATS_AT_ONCE):
            body = encode_beats(beats[begin : begin + BEATS_AT_ONCE])
            one = Datagram(HEARTBEAT, self.channel.number, 0, 0, 0, -1, now_ms, 0, 1, body)
            yield encode(one, secret)

    def _parts(self, message: Message, bare: Datagram) -> Sequence[Datagram]:
        value = message.value()
        if (whole := self._filled(message, value, bare)) and (self.channel.full or len(whole) == 1):
            return self._counted("whole" if len(whole) == 1 else "chunked", whole)
        lite = None if self.channel.full or value is None else self._lite(value)
        made = self._filled(message, lite, bare, LITE) if lite is not None else []
        if len(made) == 1:
            return self._counted("lite", made)
        return self._counted("pointer", [bare._replace(flags=POINTER)])

    def _filled(
        self, message: Message, value: bytes | None, bare: Datagram, flags: int = 0
    ) -> Sequence[Datagram]:
        """Return the datagrams of a record with *value*; none where datagrams cannot tell it."""
        pairs: Any = message.headers() or ()
        headers = [(name, _bytes(content)) for name, content in pairs]
        try:
            more, body = encode_record(message.key(), headers, value)
            one = bare._replace(flags=flags | more, body=body)
            parts = split(one, self._longest, signed=bool(self.channel.keys))
            return list(parts if self.channel.full else islice(parts, 2))  # more than one is too many
        except ValueError:
            return []

    def _counted(self, form: str, made: Sequence[Datagram]) -> Sequence[Datagram]:
        self.forms[form] += 1
        return made


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
