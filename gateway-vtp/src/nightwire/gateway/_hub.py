"""What subscribers are served from: the ring, the backlog behind it, and the verdicts of their filters."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from nightwire.gateway._backlog import Archive
from nightwire.gateway._filters import FilterList
from nightwire.gateway._judge import Judge
from nightwire.gateway._ring import Cursor, Event, Positions, Ring

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

    def __init__(self, topics: Sequence[str], ring: Ring, archive: Archive, judge: Judge) -> None:
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
