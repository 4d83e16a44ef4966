"""Where to begin in each partition, decided without I/O."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from nightwire.core.kafka import TopicPartition

OffsetRange = tuple[int, int]
"""Offset of the oldest record that Kafka still has, and the one after the newest."""

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


def resume(committed: int | None, held: OffsetRange, initial: int) -> StartOffset:
    """Return where a group goes on.

    Args:
        committed: Its position; None where it has none.
        held: What the partition holds.
        initial: Where a group begins that has no position.
    """
    oldest, end = held
    if committed is None:
        return StartOffset(min(max(initial, oldest), end))
    if committed < oldest:
        return StartOffset(oldest, expired=oldest - committed)
    if committed > end:  # the topic was made anew: its offsets began again
        return StartOffset(oldest)
    return StartOffset(committed)


def start_of_range(wanted: OffsetRange, held: OffsetRange) -> StartOffset:
    """Return where reading the offsets *wanted* begins, in a partition that holds *held*."""
    first, end = wanted
    offset = min(max(first, held[0]), end)
    return StartOffset(offset, expired=offset - first)


def at_time(found: int, held: OffsetRange) -> int:
    """Return where a time begins, given Kafka's answer: -1 means that nothing is as new, so the end."""
    return held[1] if found < 0 else min(max(found, held[0]), held[1])


def tails(held: Mapping[TopicPartition, OffsetRange], count: int) -> dict[TopicPartition, int]:
    """Return where the last *count* offsets of each partition begin; empty partitions are left out.

    The newest *count* of a topic cannot lie before these, however they are spread.
    """
    return {partition: max(oldest, end - count) for partition, (oldest, end) in held.items() if end > oldest}


class NewestRecords(Generic[Item]):
    """Keeps the newest records of each topic, however many are offered.

    Args:
        count: How many of each topic.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: dict[str, list[tuple[int, int, int, Item]]] = {}

    def offer(self, partition: TopicPartition, offset: int, time_ms: int, record: Item) -> None:
        """Keep *record* if it is among the newest; of equal times the later partition, then offset."""
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
