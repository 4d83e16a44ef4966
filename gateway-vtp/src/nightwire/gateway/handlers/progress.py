"""Handlers, which act on events: what they were told, and up to where each has acted.  Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from nightwire.core.kafka import TopicPartition
from nightwire.gateway.eventlog.event import Event, Positions


class HandlerOutcome(StrEnum):
    """What became of one event at one handler."""

    DONE = "done"
    FAILED = "failed"
    LATE = "late"
    NOT_STARTED = "not-started"


@dataclass(frozen=True)
class HandlerResult:
    """What became of one event at one handler, and why where that is not *done*."""

    outcome: HandlerOutcome
    reason: str = ""


class HandlerProgress:
    """Up to where one handler has acted, while it acts on several events at once.

    Args:
        positions: The next offset to act on, per topic and partition.
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self._reached = dict(positions)
        self._running: dict[TopicPartition, set[int]] = {}

    def passed(self, event: Event) -> None:
        """Note that there is nothing to do for *event*."""
        self._reached[event.spot] = max(event.offset + 1, self._reached.get(event.spot, 0))

    def began(self, event: Event) -> None:
        """Note that the handler was given *event*."""
        self._running.setdefault(event.spot, set()).add(event.offset)
        self.passed(event)

    def ended(self, event: Event) -> None:
        """Note that the handler is done with *event*, well or badly."""
        self._running[event.spot].discard(event.offset)

    @property
    def positions(self) -> Positions:
        """Where to go on after a crash: everything before is done, some of what follows may be."""
        return {spot: min(self._running.get(spot) or {end}) for spot, end in self._reached.items()}

    def behind(self, head: Mapping[TopicPartition, int]) -> int:
        """Return how many records lie between what is done and *head*."""
        return sum(max(0, end - self.positions.get(spot, end)) for spot, end in head.items())


def acts_on(event: Event, roles: Collection[str]) -> bool:
    """Say whether a handler for *roles* acts on *event*.

    Whoever acted on an event is told that it is retracted; but no test ever passes for something else.
    """
    told = event.role != "test" and any(one.role in roles for one in event.retracts)
    return event.role in roles or told


def start_positions(
    stored: Mapping[TopicPartition, int] | None,
    oldest: Mapping[TopicPartition, int],
    live: Mapping[TopicPartition, int],
) -> Positions:
    """Return where a handler begins.

    Args:
        stored: Where it stopped; None on its first start, which begins with what comes next.
        oldest: The first offset that Kafka still has, per topic and partition.
        live: The one that comes next.
    """
    known = stored or {}
    return {
        spot: max(known[spot], oldest.get(spot, 0)) if known.get(spot, end + 1) <= end else end
        for spot, end in live.items()
    }
