"""What becomes of the source's records: pure values between reading and writing."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from nightwire.core.kafka import Headers, TopicPartition

EXPIRED = "expired"
EMPTY = "empty-container"
"""Reasons for which a record of the source has no alert here: deleted before we read it; it held none."""


@dataclass(frozen=True)
class Output:
    """One record of ``alerts.<survey>``, and the visit that it counts for."""

    key: bytes
    value: bytes
    headers: Headers
    visit: int | None


@dataclass(frozen=True)
class Item:
    """What becomes of some offsets of the source; mostly one record.

    Attributes:
        source_partition: Where it lay.
        first: Its offset, or the first of several.
        last: Its offset, or the last of several; ``first - 1`` says that reading begins here.
        read: How many records it counts as.
        outputs: The alerts in it.
        rejected: Why it has none, where that is as it should be.
        dead: Why it goes to `dead-letters`.
        value: Its bytes, in case it goes there.
        key: Its key, likewise.
        headers: Its headers, likewise.
    """

    source_partition: TopicPartition
    first: int
    last: int
    read: int = 1
    outputs: Sequence[Output] = ()
    rejected: str | None = None
    dead: str | None = None
    value: bytes = b""
    key: bytes | None = None
    headers: Headers = ()

    def buried(self, why: str) -> "Item":
        """Return it as one that goes to `dead-letters`."""
        return replace(self, outputs=(), rejected=None, dead=why)

    @property
    def where(self) -> str:
        """Its place, for people: ``topic[partition]@offset``."""
        return f"{self.source_partition[0]}[{self.source_partition[1]}]@{self.first}"


def beginning(source_partition: TopicPartition, offset: int) -> Item:
    """Return what says that reading of *source_partition* begins at *offset*."""
    return Item(source_partition, offset, offset - 1, read=0)


def expired(source_partition: TopicPartition, first: int, end: int) -> Item:
    """Return what says that the offsets *first* to before *end* were deleted before they were read."""
    return Item(source_partition, first, end - 1, read=end - first, rejected=EXPIRED)


@dataclass
class Counts:
    """What a run did."""

    read: int = 0
    delivered: int = 0
    alerts: int = 0
    dead_lettered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def add(self, items: Iterable[Item]) -> None:
        """Count *items*, which Kafka has."""
        for item in items:
            self.read += item.read
            self.alerts += len(item.outputs)
            if item.dead is not None:
                self.dead_lettered += item.read
            elif item.rejected is not None:
                self.rejected[item.rejected] += item.read
            else:
                self.delivered += item.read
