"""What a record of a channel's topic says of the offsets of the topic itself.  Pure.

Each record and each mark has one header, `HEADER`: the channel's number (4 bytes), the offset of
the record in the topic, -1 in a mark (8), and ranges of offsets, first and end, each 8 bytes; all
big-endian.  Its writer vouches for these ranges, which end with the record itself: what it wrote
there and did not copy is not the channel's.  Of offsets that nobody vouches for nothing is known.
"""

import struct
from typing import NamedTuple

from nightwire.core.channels.mapping import ChannelMapping
from nightwire.core.datagrams.datagram import channel_number
from nightwire.schemas import MendableError

HEADER = "nightwire-channel"
HEAD, RANGE = struct.Struct(">Iq"), struct.Struct(">qq")
MARK = -1
"""Stands for the offset where there is no record."""
MOST_RANGES = 4_096
"""Most ranges that are kept to be told; of those before nobody hears."""


class VouchError(MendableError):
    """A header that no source of ours writes."""


class Vouch(NamedTuple):
    """What one record of a channel's topic says: the channel, its offset or `MARK`, the ranges."""

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

    Between its own records may lie others', and the marks by which Kafka ends its transactions.
    """

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._told: dict[int, int] = {}
        self._open, self._ended = False, 0  # whether it wrote since the last transaction; ended ones

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self._ranges[-1][1] if self._ranges else 0

    def note(self, offset: int) -> None:
        """Note that the record at *offset* is the source's."""
        if offset < (end := self.end):  # the topic was made anew
            self._ranges, self._told = [], {}
        if self._ranges and offset == end + self._ended:
            self._ranges[-1] = self._ranges[-1][0], offset + 1
        else:
            self._ranges.append((offset, offset + 1))
            del self._ranges[:-MOST_RANGES]
        self._ended, self._open = 0, True

    def transaction_ended(self) -> None:
        """Note that the source's transaction is over: Kafka's mark takes an offset."""
        self._ended, self._open = self._ended + self._open, False

    def tell(self, number: int) -> tuple[range, ...]:
        """Return what the channel *number* was not told until now."""
        told, end = self._told.get(number, 0), self.end
        self._told[number] = end
        if self._ranges and self._ranges[-1][0] <= told < end:  # nearly always
            return (range(told, end),)
        return tuple(range(max(first, told), stop) for first, stop in self._ranges if stop > told)

    def forget_told(self) -> None:
        """Forget what every channel was told: the last run goes on."""
        self._ranges = [(self.end, self.end)] if self._ranges else []
