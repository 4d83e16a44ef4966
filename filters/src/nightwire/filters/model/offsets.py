"""Arithmetic on Kafka's offsets, and on the engine's own, which Spark keeps in its checkpoint.
Pure.

An engine's offset is ``{"alerts.sim": {"0": 1250, …}, …, "filters": 57, "visits": 12, "at":
1764…}``: for each partition the next Kafka offset to read; the version of the filter set (the end
offset of the topic `filters`) by which the records before it were judged; how far the topic
`visits` was read; when the batch was planned [ms since 1970, UTC]; and whether it reads all that
passed filters until then (`drained`).  A batch of a slow lane may leave its records out
(`skipped`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nightwire.core.kafka import TopicPartition

FILTERS, VISITS, AT, DRAINED, SKIPPED = "filters", "visits", "at", "drained", "skipped"

RecordPosition = tuple[str, int, int]
"""Topic, partition, offset of a record."""

Positions = Mapping[TopicPartition, int]
"""An offset of each partition."""

Offset = dict[str, Any]
"""The engine's; see above."""

Visit = tuple[str, int]
"""Survey and number."""

VisitEnds = Mapping[int, int]
"""The last offset of a visit, by partition of its survey's topic."""


@dataclass(frozen=True, order=True)
class OffsetRange:
    """Kafka offsets *first* to *end* - 1 of one partition."""

    topic: str
    partition: int
    first: int
    end: int

    @property
    def size(self) -> int:
        """Offsets in it; with holes there are fewer records."""
        return self.end - self.first


def positions(offset: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Return the next Kafka offset of each partition in *offset*."""
    return {
        (topic, int(partition)): next_
        for topic, partitions in offset.items()
        if topic not in (FILTERS, VISITS, AT, DRAINED, SKIPPED)
        for partition, next_ in partitions.items()
    }


def to_offset(reached: Positions, filters: int, **more: int) -> Offset:
    """Return the engine's offset for these positions and version of the filter set, and *more*."""
    offset: Offset = {}
    for (topic, partition), next_ in sorted(reached.items()):
        offset.setdefault(topic, {})[str(partition)] = next_
    return {**offset, FILTERS: filters, **more}


def version(offset: Mapping[str, Any]) -> int:
    """Return the filter set's version in *offset*."""
    return int(offset.get(FILTERS, 0))


def visits(offset: Mapping[str, Any]) -> int:
    """Return how far the topic `visits` was read."""
    return int(offset.get(VISITS, 0))


def planned_at(offset: Mapping[str, Any]) -> int:
    """Return when the batch was planned. [ms since 1970, UTC]"""
    return int(offset.get(AT, 0))


def drained(offset: Mapping[str, Any]) -> bool:
    """Return whether the batch reads all that passed filters before it."""
    return bool(offset.get(DRAINED, 0))


def skipped(offset: Mapping[str, Any]) -> bool:
    """Return whether the batch leaves its records out, for they are too old."""
    return bool(offset.get(SKIPPED, 0))


def advance(start: Positions, ends: Positions, limit: int | None) -> dict[TopicPartition, int]:
    """Return how far to read: never before *start*, never past *ends*, at most *limit* offsets in
    all.

    The limit is shared evenly; what one partition does not need goes to the others.
    """
    backlog = {partition: max(0, end - start.get(partition, 0)) for partition, end in ends.items()}
    taken = dict(start)
    left = sum(backlog.values()) if limit is None else limit
    waiting = sorted(backlog, key=lambda partition: (backlog[partition], partition))
    for index, partition in enumerate(waiting):
        share = min(backlog[partition], max(left // (len(waiting) - index), min(left, 1)))
        taken[partition] = start.get(partition, 0) + share
        left -= share
    return taken


def ranges(start: Positions, end: Positions, beginnings: Positions) -> list[OffsetRange]:
    """Return the ranges between two positions; a partition new in *end* starts at its beginning."""
    found = (
        OffsetRange(*partition, start.get(partition, beginnings.get(partition, 0)), next_)
        for partition, next_ in sorted(end.items())
    )
    return [one for one in found if one.size > 0]


def share_out(work: Sequence[OffsetRange], tasks: int) -> list[tuple[OffsetRange, ...]]:
    """Divide *work* into at most *tasks* parts of nearly equal size, the same each time."""
    parts: list[list[OffsetRange]] = [[] for _ in range(min(tasks, len(work)))]
    for one in sorted(work, key=lambda one: (-one.size, one)):
        min(parts, key=lambda part: sum(other.size for other in part)).append(one)
    return [tuple(sorted(part)) for part in parts]


def chunks(work: Iterable[OffsetRange], most: int) -> list[list[OffsetRange]]:
    """Divide *work*, in its order, into parts of at most *most* offsets; larger ranges are cut."""
    parts: list[list[OffsetRange]] = [[]]
    for one in cut(work, most):
        if parts[-1] and sum(other.size for other in parts[-1]) + one.size > most:
            parts.append([])
        parts[-1].append(one)
    return [part for part in parts if part]


def cut(work: Iterable[OffsetRange], most: int) -> Iterator[OffsetRange]:
    """Yield the ranges of *work*, none of more than *most* offsets."""
    for one in work:
        for first in range(one.first, one.end, most):
            yield replace(one, first=first, end=min(first + most, one.end))


def lag(ends: Positions, done: Positions, beginnings: Positions) -> dict[str, int]:
    """Return, per topic, how many offsets are not processed yet."""
    behind: dict[str, int] = {}
    for partition, end in ends.items():
        missing = max(0, end - done.get(partition, beginnings.get(partition, end)))
        behind[partition[0]] = behind.get(partition[0], 0) + missing
    return behind
