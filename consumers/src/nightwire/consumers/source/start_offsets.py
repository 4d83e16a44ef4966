"""Where to begin in each partition, decided without I/O."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from nightwire.core.kafka import TopicPartition, Watermarks

Item = TypeVar("Item")


@dataclass(frozen=True)
class StartOffset:
    """Where reading begins in one partition.

    Attributes:
        offset: First offset to read.
        expired: Records that Kafka deleted before they were read.
    """

    offset: int
    expired: int = 0


def resume(committed: int | None, held: Watermarks, initial: int) -> StartOffset:
    """Return where a group goes on.

    Args:
        committed: Its position; None where it has none.
        held: What the partition holds.
        initial: Where a group begins that has no position.
    """
    if committed is None:
        return StartOffset(min(max(initial, held.low), held.high))
    if committed < held.low:
        return StartOffset(held.low, expired=held.low - committed)
    if committed > held.high:  # the topic was made anew: its offsets began again
        return StartOffset(held.low)
    return StartOffset(committed)


def start_of_range(first: int, end: int, held: Watermarks) -> StartOffset:
    """Return where reading the offsets *first* to *end* - 1 of a partition begins."""
    offset = min(max(first, held.low), end)
    return StartOffset(offset, expired=offset - first)


def at_time(found: int, held: Watermarks) -> int:
    """Return where a time begins, given Kafka's answer, in which -1 means the end."""
    return held.high if found < 0 else min(max(found, held.low), held.high)


def tails(held: Mapping[TopicPartition, Watermarks], count: int) -> dict[TopicPartition, int]:
    """Return where the last *count* offsets of each partition begin; empty partitions are left out.

    The newest *count* of a topic cannot lie before these, however they are spread.
    """
    return {
        partition: max(marks.low, marks.high - count)
        for partition, marks in held.items()
        if marks.high > marks.low
    }


class NewestRecords(Generic[Item]):
    """Keeps the newest records of each topic, however many are offered.

    Args:
        count: How many of each topic.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: dict[str, list[tuple[int, int, int, Item]]] = {}

    def offer(self, partition: TopicPartition, offset: int, time_ms: int, record: Item) -> None:
        """Keep *record* if it is among the newest; of equal times the last by partition, offset."""
        topic, number = partition
        kept = self._kept.setdefault(topic, [])
        entry = (time_ms, number, offset, record)
        if len(kept) < self._count:
            heapq.heappush(kept, entry)
        elif entry[:3] > kept[0][:3]:
            heapq.heapreplace(kept, entry)

    def in_order(self) -> Iterator[Item]:
        """Yield what was kept, oldest first, all topics together."""
        entries = [(entry[:3], topic, entry[3]) for topic, kept in self._kept.items() for entry in kept]
        for _, _, record in sorted(entries, key=lambda entry: entry[:2]):
            yield record
