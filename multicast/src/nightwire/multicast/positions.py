"""A relay's position in a partition: committed offset and metadata.  Pure."""

import re
from typing import NamedTuple

EPOCHS = 1 << 16
"""Modulus of epochs."""
METADATA = re.compile(r"epoch=(\d{1,5}) sent=(-?\d{1,15})")


class Position(NamedTuple):
    """A relay's position in a partition.

    Attributes:
        epoch: Of the relay that has the partition; a takeover increments it.
        next: The next offset to read.
        sent: The last offset that was sent; -1 before the first.
    """

    epoch: int
    next: int
    sent: int

    @property
    def metadata(self) -> str:
        """The metadata committed with the offset."""
        return f"epoch={self.epoch} sent={self.sent}"

    def after(self, offset: int, *, was_sent: bool) -> "Position":
        """Return the position after the record at *offset*."""
        return Position(self.epoch, offset + 1, offset if was_sent else self.sent)


def relay_group(group: str) -> str:
    """Return the consumer group of the relays of a multicast group."""
    return f"nightwire-relay-{group}"


def first_epoch(now_ms: int) -> int:
    """Return the epoch of a group without position, later than any before it was deleted.

    It counts minutes: takeovers are rarer.
    """
    return now_ms // 60_000 % EPOCHS


def resume(committed: int, metadata: str | None, low: int, high: int, *, first: int) -> tuple[Position, int]:
    """Return the position of a relay that takes a partition, and how many records have expired.

    A group without committed offset begins at the end.

    Args:
        committed: The group's offset; negative for none.
        metadata: Committed with it.
        low: Kafka's oldest offset.
        high: The offset after the newest.
        first: The epoch of a group without committed offset.
    """
    saved = METADATA.fullmatch(metadata or "")
    epoch = (int(saved[1]) + 1) % EPOCHS if saved else first
    begin = high if committed < 0 else min(max(committed, low), high)
    sent = int(saved[2]) if saved else begin - 1
    return Position(epoch, begin, min(sent, begin - 1)), max(0, begin - committed) if committed >= 0 else 0
