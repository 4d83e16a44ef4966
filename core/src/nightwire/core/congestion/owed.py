"""What a link owes: the offsets of alerts that went out reduced, or not at all.  Pure.

Kept by blocks of offsets, a byte an offset: so a block is a short record that is written anew when
something of it changes.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType

from nightwire.core.kafka import TopicPartition

BLOCK = 1_000
"""Offsets of a block."""

RUNS = 100
"""So many runs of offsets follow at once: what names them goes into a URL."""

Block = tuple[TopicPartition, int]
"""A partition, and the first offset of the block."""


class Sent(IntEnum):
    """What went out of an alert that is owed."""

    NOTHING = 4
    STAMPLESS = 1
    LITE = 2


KNOWN = bytes(one if one in {*Sent} else 0 for one in range(256))
"""What a byte says, by the byte; 0 for nothing."""
SKIPPED = bytes([Sent.NOTHING]) * BLOCK
"""A block of which nothing went out; all such are this one."""


class Owed:
    """The offsets that are owed, by partition."""

    def __init__(self) -> None:
        self._blocks: dict[Block, bytes | bytearray] = {}
        self._changed: set[Block] = set()

    def __len__(self) -> int:
        return sum(BLOCK - block.count(0) for block in self._blocks.values())

    def add(self, partition: TopicPartition, offset: int, sent: Sent) -> None:
        """Note that of the alert at *offset* no more than *sent* went out."""
        self._put(*self._of(partition, offset), bytes([sent]))

    def skip(self, partition: TopicPartition, offsets: range) -> None:
        """Note that nothing went out of the alerts at *offsets*."""
        for begin in range(offsets.start - offsets.start % BLOCK, offsets.stop, BLOCK):
            part = range(max(offsets.start, begin), min(offsets.stop, begin + BLOCK))
            self._put((partition, begin), part.start - begin, SKIPPED[: len(part)])

    def pay(self, partition: TopicPartition, offset: int) -> bool:
        """Note that the alert at *offset* is owed no more; return whether it was."""
        block, at = self._of(partition, offset)
        if not (held := self._blocks.get(block)) or not held[at]:
            return False
        self._put(block, at, b"\0")
        return True

    def first(
        self, most: int, least: Mapping[TopicPartition, int] = MappingProxyType({})
    ) -> dict[tuple[TopicPartition, int], Sent]:
        """Return the first *most* offsets that are owed, or `RUNS`, and what went out of each.

        Args:
            most: So many at most.
            least: Below these offsets of partitions nothing can be had just now.
        """
        found: dict[tuple[TopicPartition, int], Sent] = {}
        runs = 0
        for (partition, begin), held in sorted(self._blocks.items()):
            low = least.get(partition, 0)
            for offset, sent in enumerate(held, begin) if low < begin + BLOCK else ():
                if not sent or offset < low:
                    continue
                runs += (partition, offset - 1) not in found
                if len(found) == most or runs > RUNS:
                    return found
                found[partition, offset] = Sent(sent)
        return found

    def begins(self, partition: TopicPartition) -> int:
        """Return the offset from which on something is owed of *partition*, at the earliest."""
        return min((begin for where, begin in self._blocks if where == partition), default=sys.maxsize)

    def drop(self, partition: TopicPartition, offsets: range) -> list[int]:
        """Owe nothing of *offsets* any more; return those that were owed."""
        found: list[int] = []
        for (where, begin), held in sorted(self._blocks.items()):
            part = range(max(offsets.start - begin, 0), min(offsets.stop - begin, BLOCK))
            if where == partition and (owed := [begin + at for at in part if held[at]]):
                found += owed
                self._put((where, begin), part.start, bytes(len(part)))
        return found

    def forget(self, partition: TopicPartition) -> None:
        """Hold nothing of *partition*: another member does."""
        for block in [block for block in self._blocks if block[0] == partition]:
            del self._blocks[block]
            self._changed.discard(block)

    def changes(self) -> Iterator[tuple[Block, bytes | None]]:
        """Yield the blocks that changed since the last call; None where nothing is owed there."""
        for block in sorted(self._changed):
            held = self._blocks[block]
            if not any(held):
                del self._blocks[block]
            yield block, bytes(held).rstrip(b"\0") or None
        self._changed.clear()

    def restore(self, blocks: Mapping[Block, bytes]) -> None:
        """Hold *blocks* as they were kept; what they cannot hold is left out."""
        for block, kept in blocks.items():
            known = kept[:BLOCK].translate(KNOWN).ljust(BLOCK, b"\0")
            self._blocks[block] = SKIPPED if known == SKIPPED else known

    def _put(self, block: Block, at: int, sent: bytes) -> None:
        """Hold *sent* at a place of *block* and behind it."""
        self._changed.add(block)
        if len(sent) == BLOCK:
            self._blocks[block] = sent
            return
        held = self._blocks.get(block, bytes(BLOCK))
        if not isinstance(held, bytearray):
            held = self._blocks[block] = bytearray(held)
        held[at : at + len(sent)] = sent

    @staticmethod
    def _of(partition: TopicPartition, offset: int) -> tuple[Block, int]:
        return (partition, offset - offset % BLOCK), offset % BLOCK


def ranges(offsets: Iterable[int]) -> list[range]:
    """Return ascending *offsets* as ranges without gaps."""
    found: list[range] = []
    for one in offsets:
        if found and found[-1].stop == one:
            found[-1] = range(found[-1].start, one + 1)
        else:
            found.append(range(one, one + 1))
    return found
