"""Broker to subscribers: every event from Kafka to every peer, at the peer's own pace."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from itertools import count
from typing import Any

from nightwire.core.accounts import Account
from nightwire.core.clock import now_ms
from nightwire.gateway._book import STAGE_OUT, AccountBook
from nightwire.gateway._conversation import SilenceError, messages
from nightwire.gateway._demands import Door, NotAdmittedError
from nightwire.gateway._filters import FilterList
from nightwire.gateway._frames import FrameError, encode_frame
from nightwire.gateway._hub import Hub
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._ring import Event
from nightwire.gateway._session import Subscriber, nak, say
from nightwire.gateway._settings import Settings
from nightwire.gateway._transport import AUTHENTICATE, IAMALIVE, Transport
from nightwire.gateway._trust import Trust
from nightwire.gateway._xml import XMLRefusedError

log = logging.getLogger(__name__)

BUFFER = 256 << 10
"""What is held for a peer that does not read, before it falls behind. [byte]"""
MAX_MESSAGE = 64 << 10
"""Longest message of a subscriber: as many filters as are taken, of the longest, are a third of it. [byte]"""
SILENCES = 2.5
"""A peer that said nothing for so many iamalive intervals is gone."""
ACCOUNT_INTERVAL = 3.0  # [s]


class Subscribers:
    """Our side of connections from subscribers.

    Args:
        settings: The gateway's.
        hub: Where events come from.
        book: Where accounts go.
        metrics: The process's metrics.
        trust: Judges their signatures; None where none are asked for.
    """

    def __init__(
        self,
        settings: Settings,
        hub: Hub,
        book: AccountBook,
        metrics: GatewayMetrics,
        trust: Trust | None = None,
    ) -> None:
        self._settings, self._hub, self._book, self._metrics = settings, hub, book, metrics
        self._trust = trust
        self._sessions = count(now_ms())
        self._said_too_large = False

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one subscriber until it leaves or falls silent."""
        writer.transport.set_write_buffer_limits(high=BUFFER)
        peer = Subscriber(FilterList(), heard=asyncio.get_running_loop().time())
        door = Door(self._settings.ivorn, self._trust, self._metrics)
        session = next(self._sessions)
        events = self._hub.events(self._hub.live())
        writer.write(encode_frame(say(Transport(AUTHENTICATE, self._settings.ivorn))))
        log.info("subscriber %s came", _name(writer))
        try:
            await first_of(
                self._listen(peer, door, reader, writer),
                self._push(peer, door, events, writer),
                self._keep_alive(peer, writer),
                self._account_now_and_then(peer, session),
            )
        except NotAdmittedError as error:
            log.info("subscriber %s is not let in: %s", _name(writer), error)
            self._metrics.dropped.labels("subscriber", "unsigned").inc()
            writer.write(encode_frame(say(nak(None, self._settings.ivorn, str(error)))))
        finally:
            self._account(peer, session)
            said = peer.name or "without a name"
            log.info("subscriber %s (%s) left; sent %d, acked %d", _name(writer), said, peer.sent, peer.acked)

    async def _listen(
        self, peer: Subscriber, door: Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        clock = asyncio.get_running_loop()
        try:
            limits = self._settings.doors.limits
            incoming = messages(reader, max_length=MAX_MESSAGE, frame_timeout=limits.frame_timeout)
            async for message in incoming:
                self._hear(peer, door, message, clock.time(), writer)
        except (FrameError, SilenceError) as error:
            reason = "frame" if isinstance(error, FrameError) else "slow"
            self._metrics.dropped.labels("subscriber", reason).inc()
            log.info("subscriber %s is disconnected: %s", _name(writer), error)

    def _hear(
        self, peer: Subscriber, door: Door, message: bytes, now: float, writer: asyncio.StreamWriter
    ) -> None:
        acked, naked = peer.acked, peer.naked
        try:
            filters = peer.receive(message, now)
        except XMLRefusedError as error:
            log.info("subscriber %s said what is no message: %s", _name(writer), error)
            return
        self._metrics.answered.labels("ack").inc(peer.acked - acked)
        self._metrics.answered.labels("nak").inc(peer.naked - naked)
        if filters is not None:
            door.answer(message)
        if filters is not None and (filters.filters or filters.refused):
            texts = [one.text for one in filters.filters]
            log.info("subscriber %s filters by %s; refused: %s", _name(writer), texts, filters.refused)

    async def _push(
        self, peer: Subscriber, door: Door, events: AsyncIterator[Event], writer: asyncio.StreamWriter
    ) -> None:
        await door.opened(self._settings.signatures.answer_timeout)
        async for event in events:
            if len(event.document) > self._settings.subscriber_max_frame:
                self._leave_out(event)
            elif self._hub.wants(peer.filters, event):
                peer.event_sent(event.ivorn)
                writer.write(encode_frame(event.document))
                self._metrics.sent.labels(_role(event)).inc()
                await writer.drain()
            else:
                self._metrics.filtered.inc()

    def _leave_out(self, event: Event) -> None:
        self._metrics.too_large.inc()
        if not self._said_too_large:
            self._said_too_large = True
            limit = self._settings.subscriber_max_frame
            size = len(event.document)
            log.warning("%s has %d bytes, subscribers get at most %d", event.ivorn, size, limit)

    async def _keep_alive(self, peer: Subscriber, writer: asyncio.StreamWriter) -> None:
        clock, interval = asyncio.get_running_loop(), self._settings.iamalive
        while peer.silent_for(clock.time()) <= SILENCES * interval:
            await asyncio.sleep(interval)
            if writer.transport.get_write_buffer_size() < BUFFER:
                writer.write(encode_frame(say(Transport(IAMALIVE, self._settings.ivorn))))
        log.info("subscriber %s answered nothing for %g s", _name(writer), SILENCES * interval)
        self._metrics.dropped.labels("subscriber", "silent").inc()

    async def _account_now_and_then(self, peer: Subscriber, session: int) -> None:
        written = (0, 0, 0)
        while True:
            await asyncio.sleep(ACCOUNT_INTERVAL)
            if (peer.sent, peer.acked, peer.naked) != written:
                written = (peer.sent, peer.acked, peer.naked)
                self._account(peer, session)

    def _account(self, peer: Subscriber, session: int) -> None:
        if not peer.sent:
            return
        lost = {"nak": peer.naked, "unacked": peer.unacked}
        rejected = {reason: number for reason, number in lost.items() if number}
        source = f"vtp-subscribers/{self._settings.ivorn}"
        self._book.post(
            Account(
                STAGE_OUT, source, 0, session, session, peer.sent, delivered=peer.acked, rejected=rejected
            )
        )


async def first_of(*jobs: Coroutine[Any, Any, None]) -> None:
    """Run *jobs* until the first of them ends, and stop the others.

    Raises:
        Exception: What that first one raised.
    """
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        await task


def _name(writer: asyncio.StreamWriter) -> str:
    host, port = (writer.get_extra_info("peername") or ("?", 0))[:2]
    return f"{host}:{port}"


def _role(event: Event) -> str:
    return event.role if event.role in ("observation", "prediction", "utility", "test") else "other"
