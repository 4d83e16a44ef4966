"""The counts of one visit: alerts offered, acknowledged, refused, dead letters.  Pure."""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self

from nightwire.core.accounting import Account

STAGE = "producer"


class DeliveredMessage(Protocol):
    """What `VisitCounts` needs of a delivered message."""

    def partition(self) -> int | None:
        """Return its partition."""

    def offset(self) -> int | None:
        """Return its offset."""


@dataclass
class VisitCounts:
    """The counts of one visit.

    Attributes:
        survey: Name of the survey.
        visit: Number of the visit.
        opened: When, UTC.
        estimated: Whether the visit is closed from its topic, by another process than its writer.
        offered: Alerts that were to be written.
        acknowledged: Alerts that Kafka acknowledged.
        refused: Number of alerts that were not written, by reason.
        dead_lettered: Number of alerts, or of unreadable files, that went to `dead-letters`.
        ranges: First and last offset of each partition.
    """

    survey: str
    visit: int
    opened: datetime
    estimated: bool = False
    offered: int = 0
    acknowledged: int = 0
    dead_lettered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)

    def delivered(self, message: DeliveredMessage) -> None:
        """Count *message*, which Kafka has acknowledged."""
        self.count(message.partition() or 0, message.offset() or 0)

    def count(self, partition: int, offset: int) -> None:
        """Count the alert at *offset* of *partition*."""
        self.add(partition, 1, offset, offset)

    def add(self, partition: int, alerts: int, first: int, last: int) -> None:
        """Count *alerts* between the offsets *first* and *last* of *partition*."""
        self.acknowledged += alerts
        low, high = self.ranges.get(partition, (first, last))
        self.ranges[partition] = (min(low, first), max(high, last))

    def refuse(self, reason: str) -> None:
        """Count an alert that was not written."""
        self.refused[reason] += 1

    @property
    def key(self) -> bytes:
        """Key of its record in `visits`."""
        return f"{self.survey}/{self.visit}".encode()

    def record(self, closed: datetime | None) -> dict[str, Any]:
        """Return its record in `visits`; *closed* is None while it is open."""
        return {
            "survey": self.survey,
            "visit": self.visit,
            "opened": self.opened,
            "closed": closed,
            "written": self.acknowledged,
            "refused": sum(self.refused.values()) + self.dead_lettered,
            "partitions": [
                {"partition": partition, "first": first, "last": last}
                for partition, (first, last) in sorted(self.ranges.items())
            ],
            "estimated": self.estimated,
        }

    def as_text(self) -> str:
        """Return the counts as JSON."""
        return json.dumps(vars(self) | {"opened": self.opened.isoformat()})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the counts in the *text* of `as_text`."""
        kept = json.loads(text)
        kept["opened"] = datetime.fromisoformat(kept["opened"])
        kept["refused"] = Counter(kept["refused"])
        kept["ranges"] = {int(part): (first, last) for part, (first, last) in kept["ranges"].items()}
        return cls(**kept)

    def account(self) -> Account:
        """Return its account: offered = acknowledged + refused + dead-lettered."""
        return Account(
            stage=STAGE,
            source=f"visit/{self.survey}",
            partition=0,
            first=self.visit,
            last=self.visit,
            read=self.offered,
            delivered=self.acknowledged,
            rejected=dict(self.refused),
            dead_lettered=self.dead_lettered,
        )
