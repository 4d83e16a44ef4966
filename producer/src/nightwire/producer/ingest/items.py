"""What becomes of the source's records: the values between reading and writing.  Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from nightwire.core.kafka import Headers, TopicPartition

EXPIRED = "expired"
EMPTY = "empty-container"
"""Reasons for which a record gives no alert: deleted before it was read; a container of none."""


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
        source_partition: The partition of the source.
        first: The offset of the record, or the first of several.
        last: The offset of the record, or the last of several; ``first - 1`` where reading begins.
        read: How many records are counted.
        outputs: The alerts in them.
        rejected: Why there are none, where that is no error.
        dead_letter_reason: Why the record goes to `dead-letters`.
        value: Bytes of the record, for `dead-letters`.
        key: Its key, likewise.
        headers: Its headers, likewise.
    """

    source_partition: TopicPartition
    first: int
    last: int
    read: int = 1
    outputs: Sequence[Output] = ()
    rejected: str | None = None
    dead_letter_reason: str | None = None
    value: bytes = b""
    key: bytes | None = None
    headers: Headers = ()

    def as_dead_letter(self, why: str) -> "Item":
        """Return the item as one that goes to `dead-letters`."""
        return replace(self, outputs=(), rejected=None, dead_letter_reason=why)

    @property
    def where(self) -> str:
        """The position of the record as text: ``topic[partition]@offset``."""
        topic, partition = self.source_partition
        return f"{topic}[{partition}]@{self.first}"


def beginning(source_partition: TopicPartition, offset: int) -> Item:
    """Return the item that begins the account of *source_partition* at *offset*."""
    return Item(source_partition, offset, offset - 1, read=0)


def expired(source_partition: TopicPartition, first: int, end: int) -> Item:
    """Return the item of the offsets from *first* to before *end*, which were deleted unread."""
    return Item(source_partition, first, end - 1, read=end - first, rejected=EXPIRED)


@dataclass
class Counts:
    """The counts of a run."""

    read: int = 0
    delivered: int = 0
    alerts: int = 0
    dead_lettered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def add(self, items: Iterable[Item]) -> None:
        """Count *items* that Kafka has acknowledged."""
        for item in items:
            self.read += item.read
            self.alerts += len(item.outputs)
            if item.dead_letter_reason is not None:
                self.dead_lettered += item.read
            elif item.rejected is not None:
                self.rejected[item.rejected] += item.read
            else:
                self.delivered += item.read
