"""The coverage header of a channel's records: the offsets of the topic that it speaks for.  Pure.

Each record and each marker has one header, `HEADER`: the channel's number (4 bytes), the offset of
the record in the topic, -1 in a marker (8), and ranges of offsets, first and end, each 8 bytes; all
big-endian.  The ranges end with the record itself.  Records in the ranges that were not copied are
not the channel's; of offsets that no header covers nothing is known.
"""

import struct
from typing import NamedTuple

from nightwire.core.channels.mapping import ChannelMapping
from nightwire.core.datagrams.datagram import channel_number
from nightwire.schemas import MendableError

HEADER = "nightwire-channel"
HEAD, RANGE = struct.Struct(">Iq"), struct.Struct(">qq")
MARK = -1
"""The offset of a marker, which has no record."""
MAX_RANGES = 4_096
"""Most ranges that are kept until they are reported; older ones never are."""


class CoverageError(MendableError):
    """A coverage header is malformed."""


class Coverage(NamedTuple):
    """A coverage header: the channel's number, the record's offset or `MARK`, the ranges."""

    number: int
    offset: int
    ranges: tuple[range, ...]

    def encoded(self) -> bytes:
        """Return the header's value."""
        ranges = b"".join([RANGE.pack(one.start, one.stop) for one in self.ranges])
        return HEAD.pack(self.number, self.offset) + ranges


def coverage_of(value: bytes) -> Coverage:
    """Return the coverage in the header's *value*.

    Raises:
        CoverageError: It is malformed.
    """
    if len(value) < HEAD.size or (len(value) - HEAD.size) % RANGE.size:
        raise CoverageError(f"a header {HEADER} of {len(value)} bytes")
    number, offset = HEAD.unpack_from(value)
    ranges = tuple(range(first, end) for first, end in RANGE.iter_unpack(value[HEAD.size :]))
    if offset != MARK and not (ranges and offset == ranges[-1].stop - 1 >= 0):
        raise CoverageError(f"a header {HEADER} that does not end with offset {offset}")
    return Coverage(number, offset, ranges)


def number_of(mapping: ChannelMapping) -> int:
    """Return the number of a channel: another condition makes another channel."""
    return channel_number(mapping.topic, mapping.name, mapping.condition)


class WrittenRanges:
    """The offsets of one partition that a source wrote, and those reported to each channel.

    Between its records may be others', and Kafka's markers of transactions.
    """

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._reported: dict[int, int] = {}
        self._open, self._ended = False, 0  # an open transaction; ended ones

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self._ranges[-1][1] if self._ranges else 0

    def add(self, offset: int) -> None:
        """Add the offset of a record of the source."""
        if offset < (end := self.end):  # the topic was made anew
            self._ranges, self._reported = [], {}
        if self._ranges and offset == end + self._ended:
            self._ranges[-1] = self._ranges[-1][0], offset + 1
        else:
            self._ranges.append((offset, offset + 1))
            del self._ranges[:-MAX_RANGES]
        self._ended, self._open = 0, True

    def transaction_ended(self) -> None:
        """Count the end of a transaction: Kafka's marker takes an offset."""
        self._ended, self._open = self._ended + self._open, False

    def take_unreported(self, number: int) -> tuple[range, ...]:
        """Return the ranges not yet reported to the channel *number*; they are from now on."""
        reported, end = self._reported.get(number, 0), self.end
        self._reported[number] = end
        if self._ranges and self._ranges[-1][0] <= reported < end:  # nearly always
            return (range(reported, end),)
        return tuple(range(max(first, reported), stop) for first, stop in self._ranges if stop > reported)

    def drop_reported(self) -> None:
        """Drop all ranges, as they are reported: the last one goes on."""
        self._ranges = [(self.end, self.end)] if self._ranges else []
