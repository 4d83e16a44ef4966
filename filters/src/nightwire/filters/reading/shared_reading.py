"""Records that several readers want one after the other: read of Kafka once."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from confluent_kafka import Message

from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.alerts import RecordSource
from nightwire.filters.reading.fetch import ExpiredCount

MOST_BYTES = 192 << 20
"""Most that is kept. [byte]"""

AT_ONCE = 255
"""Records that are given at a time."""

Read = Callable[[OffsetRange, ExpiredCount], Iterator[Sequence[Message]]]


@dataclass(frozen=True)
class FetchedRange:
    """All records of a range, in order, and their size. [byte]"""

    range: OffsetRange
    records: Sequence[Message]
    size: int

    def covers(self, work: OffsetRange) -> bool:
        """Return whether it has the first record of *work*."""
        same = (self.range.topic, self.range.partition) == (work.topic, work.partition)
        return same and self.range.first <= work.first < self.range.end


@dataclass
class RecentRecords:
    """The records that were read last.

    Args:
        read: Reads a range of Kafka.
        most: Most that is kept. [byte]
    """

    read: Read
    most: int = MOST_BYTES
    _kept: deque[FetchedRange] = field(default_factory=deque)

    def records(self, work: OffsetRange, expired: ExpiredCount) -> Iterator[Sequence[Message]]:
        """Yield the records of a range, some at a time; *expired* counts expired offsets."""
        while work.size:
            known = next((one for one in self._kept if one.covers(work)), None) or self._fetched(
                work, expired
            )
            end = min(work.end, known.range.end)
            some = [one for one in known.records if work.first <= (one.offset() or 0) < end]
            for at in range(0, len(some), AT_ONCE):
                yield some[at : at + AT_ONCE]
            work = replace(work, first=end)

    def _fetched(self, work: OffsetRange, expired: ExpiredCount) -> FetchedRange:
        before = expired.count
        records = [one for some in self.read(work, expired) for one in some]
        fetched = FetchedRange(work, records, sum(len(one) for one in records))
        if expired.count == before:
            self._kept.append(fetched)
            while sum(one.size for one in self._kept) > self.most:
                self._kept.popleft()
        return fetched


@dataclass(frozen=True)
class SharedSource(RecordSource):
    """A source whose records are kept for the next reader."""

    recent: RecentRecords = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "recent", RecentRecords(super().records))

    def records(self, work: OffsetRange, expired: ExpiredCount) -> Iterator[Sequence[Message]]:
        """Yield the records of a range, some at a time; *expired* counts expired offsets.

        Raises:
            KafkaException: Kafka was silent too long.
        """
        return self.recent.records(work, expired)
