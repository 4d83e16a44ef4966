"""What subscribers are served from: the ring, the backlog behind it, and the verdicts of their filters."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from nightwire.gateway._backlog import Backlog
from nightwire.gateway._filters import FilterList
from nightwire.gateway._judge import Judge
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._ring import Cursor, Event, Positions, Ring

PIECE = 100
"""Most events that a subscriber takes from the ring at once, before others have their turn."""


class Hub:
    """Give each subscriber every event from where it began, in order, at its own pace.

    Args:
        ring: The recent events.
        backlog: Those before.
        metrics: The process's metrics.
    """

    def __init__(self, ring: Ring, backlog: Backlog, metrics: GatewayMetrics) -> None:
        self._ring, self._backlog, self._metrics = ring, backlog, metrics
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="backlog")
        self._grown = asyncio.Event()
        self._judge = Judge(metrics)

    def publish(self, events: Sequence[Event]) -> None:
        """Add new events."""
        for event in events:
            if event.deliverable:
                self._ring.append(event)
        self._metrics.held.set(self._ring.size)
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def live(self) -> Cursor:
        """Return a cursor at what comes next."""
        return self._ring.live()

    def resume(self, positions: Positions) -> Cursor:
        """Return a cursor at *positions*; where they say nothing, at what comes next."""
        return self._ring.resume(positions)

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

    async def _behind(self, cursor: Cursor) -> list[Event]:
        """Return the next piece for a cursor that fell out of the ring, and move it past that piece."""
        loop = asyncio.get_running_loop()
        read = partial(self._backlog.read, dict(cursor.positions), self._ring.tail)
        found, cursor.positions = await loop.run_in_executor(self._reading, read)
        self._metrics.backlog.inc(len(found))
        return found

    def close(self) -> None:
        """Let go of Kafka.  Blocks until a piece that is being read is read."""
        self._reading.shutdown(cancel_futures=True)
        self._backlog.close()

    def wants(self, filters: FilterList, event: Event) -> bool:
        """Say whether a subscriber with *filters* is to get *event*; each filter is asked once per event."""
        return self._judge.wants(filters, (*event.spot, event.offset), event.document)
