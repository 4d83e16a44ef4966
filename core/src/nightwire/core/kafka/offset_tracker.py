"""Up to where a reader is done that works on several records at once.  Pure."""

from collections.abc import Mapping

from nightwire.core.kafka.offsets import TopicPartition


class OffsetTracker:
    """The next offset of each partition, and the offsets before it that are unfinished.

    Args:
        positions: Where reading begins: the next offset of each partition.
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self._next = dict(positions)
        self._unfinished: dict[TopicPartition, set[int]] = {}

    @property
    def next(self) -> dict[TopicPartition, int]:
        """The offset after the last one that was seen, finished or not."""
        return dict(self._next)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Where to go on after a crash: the least unfinished offset, else the next one."""
        return {source: min({*self._unfinished.get(source, ()), end}) for source, end in self._next.items()}

    def began(self, source: TopicPartition, offset: int) -> None:
        """Note that work on the record at *offset* has begun."""
        self._unfinished.setdefault(source, set()).add(offset)
        self.passed(source, offset)

    def finished(self, source: TopicPartition, offset: int) -> None:
        """Note that work on the record at *offset* has ended, well or badly."""
        self._unfinished[source].discard(offset)

    def passed(self, source: TopicPartition, offset: int) -> None:
        """Note that the record at *offset* needs no work."""
        self._next[source] = max(offset + 1, self._next.get(source, 0))

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read on from *positions*; unfinished offsets stay."""
        self._next.update(positions)
