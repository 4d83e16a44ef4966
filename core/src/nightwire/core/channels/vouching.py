"""What a record of a channel's topic says of the offsets of the topic itself.  Pure.

Each record and each mark has one header, `HEADER`: the channel's number (4 bytes), the offset of
the record in the topic, -1 in a mark (8), and ranges of offsets, first and end, each 8 bytes; all
big-endian.  Its writer vouches for these ranges, which end with the record itself: what it wrote
there and did not copy is not the channel's.  Of offsets that nobody vouches for nothing is known.
"""

import struct
from collections.abc import Hashable
from typing import NamedTuple

from nightwire.core.channels.mapping import ChannelMapping
from nightwire.core.datagrams.datagram import channel_number
from nightwire.schemas import MendableError

HEADER = "nightwire-channel"
"""The header's name."""
HEAD, RANGE = struct.Struct(">Iq"), struct.Struct(">qq")
MARK = -1
"""Stands for the offset where there is no record."""
MOST_RANGES = 4_096
"""Most ranges that are remembered or said at once; of those before nobody hears."""


class VouchError(MendableError):
    """A header that no source of ours writes."""


class Vouch(NamedTuple):
    """What one record of a channel's topic says.

    Attributes:
        number: The channel's.
        offset: Of the record, in the topic; `MARK` where there is none.
        ranges: Offsets of the topic, in order.
    """

    number: int
    offset: int
    ranges: tuple[range, ...]

    def encoded(self) -> bytes:
        """Return the header's value."""
        said = b"".join([RANGE.pack(one.start, one.stop) for one in self.ranges])
        return HEAD.pack(self.number, self.offset) + said


def vouch_of(value: bytes) -> Vouch:
    """Return what the header's *value* says.

    Raises:
        VouchError: It is no such value.
    """
    if len(value) < HEAD.size or (len(value) - HEAD.size) % RANGE.size:
        raise VouchError(f"a header {HEADER} of {len(value)} bytes")
    number, offset = HEAD.unpack_from(value)
    ranges = tuple(range(first, end) for first, end in RANGE.iter_unpack(value[HEAD.size :]))
    if offset != MARK and not (ranges and offset == ranges[-1].stop - 1 >= 0):
        raise VouchError(f"a header {HEADER} that does not end with offset {offset}")
    return Vouch(number, offset, ranges)


def number_of(mapping: ChannelMapping) -> int:
    """Return the number of a channel: another condition makes another channel."""
    return channel_number(mapping.topic, mapping.name, mapping.condition)


class Runs:
    """The offsets of one partition that a source wrote, and what of them each channel was told.

    One record after another is the source's own; between them may lie others', and the marks by
    which Kafka ends the source's transactions, which hold nothing.
    """

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._told: dict[Hashable, int] = {}
        self._open = False  # whether a transaction has written here since the last one ended
        self._ended = 0

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self._ranges[-1][1] if self._ranges else 0

    def note(self, offset: int) -> None:
        """Note that the record at *offset* is the source's."""
        if self._ranges and offset < self.end:  # the topic was made anew
            self._ranges, self._told = [], {}
        if self._ranges and offset == self.end + self._ended:
            self._ranges[-1] = self._ranges[-1][0], offset + 1
        else:
            self._ranges.append((offset, offset + 1))
            del self._ranges[:-MOST_RANGES]
        self._ended, self._open = 0, True

    def transaction_ended(self) -> None:
        """Note that the source's transaction is over: Kafka's mark takes an offset."""
        self._ended, self._open = self._ended + self._open, False

    def tell(self, channel: Hashable, end: int) -> tuple[range, ...]:
        """Return what *channel* was not told of the offsets before *end*."""
        told = self._told.get(channel, 0)
        self._told[channel] = end
        first, stop = self._ranges[-1] if self._ranges else (0, 0)
        if first <= told < stop:  # nearly always
            return (range(told, min(stop, end)),)
        found: list[range] = []
        for first, stop in reversed(self._ranges):
            if stop <= told:
                break
            if first < end:
                found.append(range(max(first, told), min(stop, end)))
        return tuple(reversed(found))

    def forget_told(self) -> None:
        """Forget what every channel was told: the last run goes on."""
        self._ranges = [(self.end, self.end)] if self._ranges else []
