"""Where to begin in each partition, decided without I/O."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from nightwire.core.kafka import TopicPartition

Span = tuple[int, int]
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


def resume(committed: int | None, span: Span, fresh: int) -> StartOffset:
    """Return where a group goes on.

    Args:
        committed: Its position; None where it never was.
        span: What the partition holds.
        fresh: Where a group begins that never was here.
    """
    oldest, end = span
    if committed is None:
        return StartOffset(min(max(fresh, oldest), end))
    if committed < oldest:
        return StartOffset(oldest, expired=oldest - committed)
    if committed > end:  # the topic was made anew: its offsets began again
        return StartOffset(oldest)
    return StartOffset(committed)


def stretch(wanted: Span, span: Span) -> StartOffset:
    """Return where reading the offsets *wanted* begins, in a partition that holds *span*."""
    first, end = wanted
    at = min(max(first, span[0]), end)
    return StartOffset(at, expired=at - first)


def at_time(found: int, span: Span) -> int:
    """Return where a time begins, given Kafka's answer: -1 means that nothing is as new, so the end."""
    return span[1] if found < 0 else min(max(found, span[0]), span[1])


def tails(spans: Mapping[TopicPartition, Span], count: int) -> dict[TopicPartition, int]:
    """Return where the last *count* offsets of each partition begin; empty partitions are left out.

    The newest *count* of a topic cannot lie before these, however they are spread.
    """
    return {spot: max(oldest, end - count) for spot, (oldest, end) in spans.items() if end > oldest}


class NewestRecords(Generic[Item]):
    """Keep the newest items of each topic, however many are offered.

    Args:
        count: How many of each topic.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: dict[str, list[tuple[int, int, int, Item]]] = {}

    def offer(self, topic: str, time: int, partition: int, offset: int, item: Item) -> None:
        """Keep *item* if it is among the newest; of equal times the later partition, then offset, wins."""
        kept = self._kept.setdefault(topic, [])
        entry = (time, partition, offset, item)
        if len(kept) < self._count:
            heapq.heappush(kept, entry)
        elif entry[:3] > kept[0][:3]:
            heapq.heapreplace(kept, entry)

    def in_order(self) -> Iterator[Item]:
        """Yield what was kept, oldest first, all topics together."""
        entries = [(entry[:3], topic, entry[3]) for topic, kept in self._kept.items() for entry in kept]
        for _, _, item in sorted(entries, key=lambda entry: entry[:2]):
            yield item
