"""Events on their way into the log: each is written once, and acknowledged after Kafka has it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import now_ms
from nightwire.gateway.eventlog.loop_producer import LoopProducer
from nightwire.gateway.voevent.packet import Packet, voevent_fields
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)

RETRY_DELAY = 1.0
"""Time until a record that Kafka did not take is written again. [s]"""
MAX_PENDING = 10_000
"""Most events between arrival and index; when there are more, authors wait."""

Admitted = Callable[[bool | DeliveryError], None]
"""Takes True once an event is in the log as a new one, False if it was there before, or why Kafka
did not take it."""


class KnownHashes(Protocol):
    """The hashes of events in the log."""

    def knows(self, digest: bytes) -> bool:
        """Say whether an event with this hash is in the log."""


class Deduplicator:
    """Write new events to `voevents`; recognise those that are there or on their way.

    An event is *pending* from its arrival until the index has seen it in the log, so that a second
    copy finds it in one of the two.  All calls come from one event loop.

    Args:
        index: The hashes in the log.
        log: Where to write.
        instance: Name of this gateway, kept with each record.
    """

    def __init__(self, index: KnownHashes, log: LoopProducer, instance: str) -> None:
        self._index, self._log, self._instance = index, log, instance.encode()
        self._pending: dict[bytes, list[Admitted]] = {}
        """Whom to tell, the writer first; nobody any more once Kafka has the event."""
        self._waiting: deque[tuple[Packet, str, Admitted]] = deque()

    @property
    def pending(self) -> int:
        """How many events are between arrival and index."""
        return len(self._pending)

    def begin(self, packet: Packet, origin: str, admitted: Admitted) -> None:
        """Begin to write *packet*; *admitted* is called, now or later, with what became of it."""
        told = self._pending.get(packet.hash)
        if told:
            told.append(admitted)
        elif told is not None or self._index.knows(packet.hash):
            admitted(False)
        elif len(self._pending) >= MAX_PENDING:
            self._waiting.append((packet, origin, admitted))
        else:
            self._write(packet, origin, admitted)

    async def admit(self, packet: Packet, origin: str) -> bool:
        """Return True once *packet* is in the log as a new event, False if it was there before.

        Raises:
            DeliveryError: Kafka did not take it.
        """
        outcome: asyncio.Future[bool | DeliveryError] = asyncio.get_running_loop().create_future()
        self.begin(packet, origin, outcome.set_result)
        new = await asyncio.shield(outcome)  # whoever leaves does not stop it
        if isinstance(new, DeliveryError):
            raise new
        return new

    def indexed(self, hashes: list[bytes]) -> None:
        """Note that the index now has *hashes*."""
        for digest in hashes:
            self._pending.pop(digest, None)
        self._begin_waiting()

    async def settled(self) -> None:
        """Wait until every write that began is acknowledged or refused."""
        futures = []
        for told in filter(None, self._pending.values()):
            futures.append(asyncio.get_running_loop().create_future())
            told.append(futures[-1].set_result)
        await asyncio.gather(*futures)

    def _write(self, packet: Packet, origin: str, admitted: Admitted) -> None:
        fields = voevent_fields(packet)
        value = VOEVENT.encode({**fields, "origin": origin, "received": now_ms()})
        headers = [("hash", packet.hash), ("instance", self._instance), ("role", packet.role.encode())]
        told = self._pending[packet.hash] = [admitted]
        written = partial(self._written, packet.hash, told)
        self._log.begin(VOEVENTS, value, key=packet.ivorn.encode(), headers=headers, acknowledged=written)

    def _written(self, digest: bytes, told: list[Admitted], error: DeliveryError | None) -> None:
        """Tell those who wait; an event that Kafka did not take is forgotten: it may come again."""
        if error is not None:
            self._pending.pop(digest, None)
            self._begin_waiting()
        first, *copies = told
        told.clear()
        first(error or True)
        for copy in copies:
            copy(error or False)

    def _begin_waiting(self) -> None:
        """Begin with those that waited for room."""
        while self._waiting and len(self._pending) < MAX_PENDING:
            self.begin(*self._waiting.popleft())


async def retry_until_written(write: Callable[[], Awaitable[bool]], what: str) -> bool:
    """Return what *write* returns, however long Kafka is away: nobody will send *what* again."""
    while True:
        try:
            return await write()
        except DeliveryError as error:
            log.warning("%s is not in Kafka yet, trying again: %s", what, error)
            await asyncio.sleep(RETRY_DELAY)
