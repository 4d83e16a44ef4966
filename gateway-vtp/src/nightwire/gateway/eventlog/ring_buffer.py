"""The recent events, held once for all subscribers; Kafka holds the earlier ones.

Each subscriber has a cursor.  While it keeps up, it reads from the ring.  One that falls so far
behind that the ring has moved on reads from Kafka, from its own position, until it is back at the
ring.  So memory is bounded by the ring, whatever the subscribers do.  Pure: no Kafka, no clock, one
thread.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from nightwire.core.kafka import TopicPartition
from nightwire.gateway.eventlog.event import Event, Positions

MAX_EVENTS = 20_000
MAX_BYTES = 64 << 20  # [byte]


@dataclass
class Cursor:
    """Where one subscriber is: in the ring buffer, and in Kafka for when it falls behind."""

    sequence: int
    positions: Positions

    def passed(self, event: Event) -> bool:
        """Say whether *event* lies behind this cursor."""
        return event.offset < self.positions.get(event.topic_partition, 0)

    def move_past(self, event: Event) -> None:
        """Note that *event* was delivered, or need not be."""
        self.positions[event.topic_partition] = max(
            event.offset + 1, self.positions.get(event.topic_partition, 0)
        )


class RingBuffer:
    """The last events, bounded in number and size.

    Args:
        start: Where reading begins, per topic and partition.
        max_events: Most events to hold.
        max_bytes: Most bytes of events to hold. [byte]
    """

    def __init__(
        self, start: Mapping[TopicPartition, int], *, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES
    ) -> None:
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._max_events, self._max_bytes = max_events, max_bytes
        self._first = 0
        self._tail: Positions = dict(start)
        self._head: Positions = dict(start)

    @property
    def tail(self) -> Positions:
        """Position in Kafka of the oldest event held here."""
        return dict(self._tail)

    @property
    def size(self) -> int:
        """How much is held. [byte]"""
        return self._bytes

    def append(self, event: Event) -> None:
        """Add the newest event, and drop the oldest ones where there is no room."""
        self._events.append(event)
        self._bytes += len(event.document)
        self._head[event.topic_partition] = event.offset + 1
        while len(self._events) > self._max_events or self._bytes > self._max_bytes:
            oldest = self._events.popleft()
            self._bytes -= len(oldest.document)
            self._tail[oldest.topic_partition] = oldest.offset + 1
            self._first += 1

    def live(self) -> Cursor:
        """Return a cursor at the newest end."""
        return Cursor(self._first + len(self._events), dict(self._head))

    def resume(self, positions: Positions) -> Cursor:
        """Return a cursor at *positions*; at the newest end for other partitions."""
        return Cursor(-1, {**self._head, **positions})

    def take(self, cursor: Cursor, limit: int) -> list[Event] | None:
        """Return the next events for *cursor*, at most *limit*, and move it.

        None when the ring has moved on past it: read from Kafka instead.
        """
        if cursor.sequence < self._first:
            if not self._caught_up(cursor):
                return None
            cursor.sequence = self._first
        start = cursor.sequence - self._first
        found = [self._events[i] for i in range(start, min(start + limit, len(self._events)))]
        cursor.sequence += len(found)
        return [event for event in found if not cursor.passed(event)]

    def _caught_up(self, cursor: Cursor) -> bool:
        return all(
            cursor.positions.get(topic_partition, 0) >= offset
            for topic_partition, offset in self._tail.items()
        )
