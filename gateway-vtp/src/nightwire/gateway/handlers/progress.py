"""Up to where a handler has acted on events, and which it acts on.  Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nightwire.core.kafka import OffsetTracker, TopicPartition
from nightwire.gateway.eventlog.event import Event, Positions


class HandlerOutcome(StrEnum):
    """How a handler ended with one event."""

    DONE = "done"
    FAILED = "failed"
    LATE = "late"
    NOT_STARTED = "not-started"


@dataclass(frozen=True)
class HandlerResult:
    """How a handler ended with one event, and why where that is not *done*."""

    outcome: HandlerOutcome
    reason: str = ""


class HandlerProgress:
    """Up to where one handler has acted, while it acts on several events at once.

    Args:
        positions: The next offset to act on, per topic and partition.
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self._offsets = OffsetTracker(positions)

    def skipped(self, event: Event) -> None:
        """Note that the handler does not act on *event*."""
        self._offsets.passed(event.topic_partition, event.offset)

    def began(self, event: Event) -> None:
        """Note that the handler was given *event*."""
        self._offsets.began(event.topic_partition, event.offset)

    def ended(self, event: Event) -> None:
        """Note that the handler is done with *event*, well or badly."""
        self._offsets.finished(event.topic_partition, event.offset)

    @property
    def positions(self) -> Positions:
        """Where to go on after a crash: each earlier event is done, some later ones may be."""
        return self._offsets.positions

    def behind(self, head: Mapping[TopicPartition, int]) -> int:
        """Return how many records lie between the positions and *head*."""
        return sum(
            max(0, end - self.positions.get(topic_partition, end)) for topic_partition, end in head.items()
        )


def acts_on(event: Event, roles: Collection[str]) -> bool:
    """Say whether a handler for *roles* acts on *event*.

    A handler that acted on an event gets its retraction too; but no test passes for something else.
    """
    retracts = event.role != "test" and any(one.role in roles for one in event.retracts)
    return event.role in roles or retracts


def start_positions(
    stored: Mapping[TopicPartition, int] | None,
    oldest: Mapping[TopicPartition, int],
    live: Mapping[TopicPartition, int],
) -> Positions:
    """Return where a handler begins.

    Args:
        stored: Where it stopped; None on its first start, which begins with what comes next.
        oldest: The first offset that Kafka still has, per topic and partition.
        live: The offset that comes next.
    """
    known = stored or {}
    return {
        topic_partition: max(known[topic_partition], oldest.get(topic_partition, 0))
        if known.get(topic_partition, end + 1) <= end
        else end
        for topic_partition, end in live.items()
    }
