"""Events on their way into the log: each is written once, and acknowledged after Kafka has it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import now_ms
from nightwire.gateway.voevent.packet import Packet, voevent_fields
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)

RETRY_DELAY = 1.0
"""Time until a record that Kafka did not take is written again. [s]"""
MAX_PENDING = 10_000
"""Most events between arrival and index; when there are more, authors wait."""


class KnownHashes(Protocol):
    """The hashes of events in the log."""

    def knows(self, digest: bytes) -> bool:
        """Say whether an event with this hash is in the log."""


class RecordWriter(Protocol):
    """Where events are written."""

    def begin(
        self, topic: str, value: bytes, *, key: bytes, headers: list[tuple[str, bytes]]
    ) -> asyncio.Future[tuple[int, int]]:
        """Begin to write a record; the future is done once it is acknowledged."""


class Deduplicator:
    """Write new events to `voevents`; recognise those that are there or on their way.

    An event is *pending* from its arrival until the index has seen it in the log, so that a second
    copy finds it in one of the two.  All calls come from one event loop.

    Args:
        index: The hashes in the log.
        log: Where to write.
        instance: Name of this gateway, kept with each record.
    """

    def __init__(self, index: KnownHashes, log: RecordWriter, instance: str) -> None:
        self._index, self._log, self._instance = index, log, instance.encode()
        self._pending: dict[bytes, asyncio.Future[tuple[int, int]]] = {}
        self._admitting: set[asyncio.Task[bool]] = set()
        self._room = asyncio.Condition()

    @property
    def pending(self) -> int:
        """How many events are between arrival and index."""
        return len(self._pending)

    def begin(self, packet: Packet, origin: str, done: Callable[[bool | DeliveryError], None]) -> None:
        """Begin to write *packet*; *done* is called, later, with what `admit` would return."""
        if (
            len(self._pending) >= MAX_PENDING
            or packet.hash in self._pending
            or self._index.knows(packet.hash)
        ):
            admitting = asyncio.ensure_future(self.admit(packet, origin))
            self._admitting.add(admitting)
            admitting.add_done_callback(self._admitting.discard)
            admitting.add_done_callback(lambda task: done(_failure(task) or task.result()))
        else:
            self._write(packet, origin).add_done_callback(lambda task: done(_failure(task) or True))

    async def admit(self, packet: Packet, origin: str) -> bool:
        """Return True once *packet* is in the log as a new event, False if it was there before.

        Raises:
            DeliveryError: Kafka did not take it.
        """
        while True:
            if self._index.knows(packet.hash):
                return False
            if (copy := self._pending.get(packet.hash)) is not None:
                await asyncio.shield(copy)
                return False
            if len(self._pending) < MAX_PENDING:
                break
            async with self._room:
                await self._room.wait()
        await asyncio.shield(self._write(packet, origin))  # an author who leaves does not stop it
        return True

    async def indexed(self, hashes: list[bytes]) -> None:
        """Note that the index now has *hashes*."""
        for digest in hashes:
            self._pending.pop(digest, None)
        async with self._room:
            self._room.notify_all()

    async def settled(self) -> None:
        """Wait until every write that began is acknowledged or refused."""
        await asyncio.gather(*self._pending.values(), return_exceptions=True)

    def _write(self, packet: Packet, origin: str) -> asyncio.Future[tuple[int, int]]:
        fields = voevent_fields(packet)
        value = VOEVENT.encode({**fields, "origin": origin, "received": now_ms()})
        headers = [("hash", packet.hash), ("instance", self._instance), ("role", packet.role.encode())]
        writing = self._log.begin(VOEVENTS, value, key=packet.ivorn.encode(), headers=headers)
        self._pending[packet.hash] = writing
        writing.add_done_callback(partial(self._written, packet.hash))
        return writing

    def _written(self, digest: bytes, writing: asyncio.Future[tuple[int, int]]) -> None:
        """Forget an event that Kafka did not take: it may come again."""
        if writing.cancelled() or writing.exception() is not None:
            self._pending.pop(digest, None)


def _failure(future: asyncio.Future[Any]) -> DeliveryError | None:
    """Return why the event is not in Kafka, or None."""
    if future.cancelled():
        return DeliveryError("it was given up")
    error = future.exception()
    return error if error is None or isinstance(error, DeliveryError) else DeliveryError(repr(error))


async def retry_until_written(write: Callable[[], Awaitable[bool]], what: str) -> bool:
    """Return what *write* returns, however long Kafka is away: nobody will send *what* again."""
    while True:
        try:
            return await write()
        except DeliveryError as error:
            log.warning("%s is not in Kafka yet, trying again: %s", what, error)
            await asyncio.sleep(RETRY_DELAY)
