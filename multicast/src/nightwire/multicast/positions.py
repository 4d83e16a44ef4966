"""Where a relay is in a partition, as it is kept beside the offset that it commits.  Pure."""

import re
from typing import NamedTuple

EPOCHS = 1 << 16
"""Epochs are counted modulo so many."""
METADATA = re.compile(r"epoch=(\d{1,5}) sent=(-?\d{1,15})")


class Position(NamedTuple):
    """A relay's position in a partition.

    Attributes:
        epoch: Of the relay that has the partition: whoever takes it over has the next one.
        next: The next offset to read.
        sent: The last offset that was sent; -1 before the first.
    """

    epoch: int
    next: int
    sent: int

    @property
    def metadata(self) -> str:
        """What is committed beside the offset."""
        return f"epoch={self.epoch} sent={self.sent}"

    def after(self, offset: int, *, was_sent: bool) -> "Position":
        """Return the position after the record at *offset*."""
        return Position(self.epoch, offset + 1, offset if was_sent else self.sent)


def relay_group(group: str) -> str:
    """Return the consumer group of the relays of a multicast group."""
    return f"nightwire-relay-{group}"


def first_epoch(now_ms: int) -> int:
    """Return the epoch of a group without position: later than those of a group that was forgotten.

    Takeovers are rarer than minutes, which these count.
    """
    return now_ms // 60_000 % EPOCHS


def resume(committed: int, metadata: str | None, low: int, high: int, *, first: int) -> tuple[Position, int]:
    """Return where a relay goes on that is given a partition, and how many records are gone.

    A relay that was never here begins live.

    Args:
        committed: The group's offset; negative for none.
        metadata: What was committed beside it.
        low: The oldest offset that Kafka has.
        high: The one after the newest.
        first: The epoch of a relay that was never here.
    """
    saved = METADATA.fullmatch(metadata or "")
    epoch = (int(saved[1]) + 1) % EPOCHS if saved else first
    begin = high if committed < 0 else min(max(committed, low), high)
    sent = int(saved[2]) if saved else begin - 1
    return Position(epoch, begin, min(sent, begin - 1)), max(0, begin - committed) if committed >= 0 else 0
