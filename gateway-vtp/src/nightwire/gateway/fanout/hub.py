"""What subscribers are served from: the ring buffer, the log before it, verdicts of filters."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.eventlog.replay import ReplayService
from nightwire.gateway.eventlog.ring_buffer import Cursor, RingBuffer
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.xpath.evaluation import FilterEvaluator
from nightwire.gateway.xpath.filters import FilterList
from nightwire.schemas.topics import VOEVENTS

PIECE = 100
"""Most events that a subscriber takes from the ring buffer before others have their turn."""


class Hub:
    """Give each subscriber every event of some topics, in order, at its own pace.

    A retraction of an event of these topics is one of its events, whatever topic it lies in.

    Args:
        topics: The topics.
        ring: The recent events.
        replay: Reads the events before them.
        evaluator: Evaluates filters.
    """

    def __init__(
        self, topics: Sequence[str], ring: RingBuffer, replay: ReplayService, evaluator: FilterEvaluator
    ) -> None:
        self._topics = frozenset(topics)
        self._ring, self._replay, self._evaluator = ring, replay, evaluator
        self._grown = asyncio.Event()

    @property
    def held(self) -> int:
        """Size of the recent events in memory. [byte]"""
        return self._ring.size

    def publish(self, events: Sequence[Event]) -> None:
        """Add new events, of whatever topics."""
        for event in events:
            if self.carries(event):
                self._ring.append(event)
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def live(self) -> Cursor:
        """Return a cursor at what comes next."""
        return self._ring.live()

    def resume(self, positions: Positions) -> Cursor:
        """Return a cursor at *positions*; other partitions begin with what comes next."""
        return self._ring.resume(positions)

    async def since(self, time: int) -> Positions:
        """Return the positions of the first records at *time* [ms since 1970] or later."""
        return await self._replay.since(self.live().positions, time)

    async def pieces(self, cursor: Cursor) -> AsyncIterator[list[Event]]:
        """Yield every event from *cursor* on, some at a time, without end."""
        while True:
            grown = self._grown
            found = self._ring.take(cursor, PIECE)
            if found is None:
                found = await self._replayed(cursor)
            elif not found:
                await grown.wait()
            yield found
            for event in found:
                cursor.move_past(event)
            if len(found) == PIECE:  # there is more: others have their turn
                await asyncio.sleep(0)

    async def _replayed(self, cursor: Cursor) -> list[Event]:
        """Return the next piece for a cursor that lies before the ring; move it past the piece."""
        found, cursor.positions = await self._replay.read(dict(cursor.positions), self._ring.tail)
        return [event for event in found if self.carries(event)]

    def matches(self, filters: FilterList, event: Event) -> bool:
        """Say whether *event* matches *filters*; each filter is evaluated once per event."""
        return self._evaluator.matches(filters, (*event.topic_partition, event.offset), event.document)

    def carries(self, event: Event) -> bool:
        """Say whether *event* is one of its events."""
        here = event.topic in self._topics or any(one.topic in self._topics for one in event.retracts)
        return here and event.deliverable


class Hubs:
    """Make hubs, one per set of topics, and give each the new events.

    Each hub has a ring buffer of its own, so that the events of one feed make no subscriber of
    another fall behind; an event in several of them is held once.

    Args:
        live: Where what is new begins, per topic and partition.
        make_ring: Returns a ring buffer that begins at such positions.
        replay: Reads what was before.
        metrics: The process's metrics.
    """

    def __init__(
        self,
        live: Positions,
        make_ring: Callable[[Positions], RingBuffer],
        replay: ReplayService,
        metrics: GatewayMetrics,
    ) -> None:
        self._live, self._make_ring, self._replay, self._metrics = live, make_ring, replay, metrics
        self._evaluator = FilterEvaluator(metrics)
        self._hubs: dict[frozenset[str], Hub] = {}

    def of(self, topics: Iterable[str]) -> Hub:
        """Return the hub of *topics*."""
        wanted = frozenset(topics)
        if wanted not in self._hubs:
            read = wanted | {VOEVENTS}  # where retractions are
            start = {
                topic_partition: offset
                for topic_partition, offset in self._live.items()
                if topic_partition[0] in read
            }
            ring = self._make_ring(start)
            self._hubs[wanted] = Hub(sorted(wanted), ring, self._replay, self._evaluator)
        return self._hubs[wanted]

    def publish(self, events: Sequence[Event]) -> None:
        """Give new events to all hubs."""
        for hub in self._hubs.values():
            hub.publish(events)
        self._metrics.held.set(sum(hub.held for hub in self._hubs.values()))

    def close(self) -> None:
        """Close the consumer of the replay.  Blocks until the piece being read is complete."""
        self._replay.close()
