"""What subscribers are served from: the ring, the backlog behind it, and the verdicts of their filters."""

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
"""Most events that a subscriber takes from the ring at once, before others have their turn."""


class Hub:
    """Give each subscriber every event of some topics from where it began, in order, at its own pace.

    A retraction of an event of these topics is one of its events, wherever it lies.

    Args:
        topics: The topics.
        ring: The recent events.
        archive: Those before.
        judge: Asks filters.
    """

    def __init__(
        self, topics: Sequence[str], ring: RingBuffer, archive: ReplayService, judge: FilterEvaluator
    ) -> None:
        self._topics = frozenset(topics)
        self._ring, self._archive, self._judge = ring, archive, judge
        self._grown = asyncio.Event()

    @property
    def held(self) -> int:
        """How much of recent events is held. [byte]"""
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
        """Return a cursor at *positions*; where they say nothing, at what comes next."""
        return self._ring.resume(positions)

    async def since(self, time: int) -> Positions:
        """Return the positions of the first records at *time* [ms since 1970] or later."""
        return await self._archive.since(list(self.live().positions), time)

    async def events(self, cursor: Cursor) -> AsyncIterator[Event]:
        """Yield every event from *cursor* on, without end."""
        while True:
            grown = self._grown
            found = self._ring.take(cursor, PIECE)
            if found is None:
                found = await self._behind(cursor)
            elif not found:
                await grown.wait()
            for event in found:
                yield event
                cursor.move_past(event)
            if len(found) == PIECE:  # there is more: others have their turn
                await asyncio.sleep(0)

    async def _behind(self, cursor: Cursor) -> list[Event]:
        """Return the next piece for a cursor that fell out of the ring, and move it past that piece."""
        found, cursor.positions = await self._archive.read(dict(cursor.positions), self._ring.tail)
        return [event for event in found if self.carries(event)]

    def wants(self, filters: FilterList, event: Event) -> bool:
        """Say whether a subscriber with *filters* is to get *event*; each filter is asked once per event."""
        return self._judge.wants(filters, (*event.spot, event.offset), event.document)

    def carries(self, event: Event) -> bool:
        """Say whether *event* is one of its events."""
        here = event.topic in self._topics or any(one.topic in self._topics for one in event.retracts)
        return here and event.deliverable


class Hubs:
    """Make hubs, and give each the new events.  Feeds of the same topics share one.

    Each hub has a ring of its own, so that what one feed carries makes no subscriber of another fall behind;
    an event in several of them is held once.

    Args:
        live: Where what is new begins, per topic and partition.
        make_ring: Returns a ring that begins at such positions.
        archive: What was before.
        metrics: The process's metrics.
    """

    def __init__(
        self,
        live: Positions,
        make_ring: Callable[[Positions], RingBuffer],
        archive: ReplayService,
        metrics: GatewayMetrics,
    ) -> None:
        self._live, self._make_ring, self._archive, self._metrics = live, make_ring, archive, metrics
        self._judge = FilterEvaluator(metrics)
        self._hubs: dict[frozenset[str], Hub] = {}

    def of(self, topics: Iterable[str]) -> Hub:
        """Return the hub of *topics*."""
        wanted = frozenset(topics)
        if wanted not in self._hubs:
            read = wanted | {VOEVENTS}  # where retractions are
            start = {spot: offset for spot, offset in self._live.items() if spot[0] in read}
            self._hubs[wanted] = Hub(sorted(wanted), self._make_ring(start), self._archive, self._judge)
        return self._hubs[wanted]

    def publish(self, events: Sequence[Event]) -> None:
        """Give new events to all hubs."""
        for hub in self._hubs.values():
            hub.publish(events)
        self._metrics.held.set(sum(hub.held for hub in self._hubs.values()))

    def close(self) -> None:
        """Let go of Kafka.  Blocks until a piece that is being read is read."""
        self._archive.close()
