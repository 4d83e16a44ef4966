"""Broker to subscribers: every event from Kafka to every peer, at the peer's own pace."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from nightwire.core.accounting import Account
from nightwire.core.runtime import now_ms
from nightwire.gateway.eventlog.accounts import STAGE_OUT, AccountWriter
from nightwire.gateway.fanout.ack_tracker import AckTracker
from nightwire.gateway.fanout.delivery import Delivery, LiveFeed
from nightwire.gateway.fanout.subscriber_state import SubscriberState
from nightwire.gateway.gateway_settings import Settings
from nightwire.gateway.net.server import Converse
from nightwire.gateway.signing.requirements import NotAdmittedError, SubscriberGate
from nightwire.gateway.signing.trust import Trust
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.conversation import SilenceError, messages
from nightwire.gateway.vtp.frames import FrameError, encode_frame
from nightwire.gateway.vtp.session import encode_now, filters_refused, nak
from nightwire.gateway.vtp.transport import AUTHENTICATE, IAMALIVE, Transport
from nightwire.gateway.xpath.filters import OFFER, FilterList

log = logging.getLogger(__name__)

BUFFER = 256 << 10
"""What is held for a peer that does not read, before it falls behind. [byte]"""
MAX_MESSAGE = 64 << 10
"""Longest message of a subscriber: as many filters as are taken, of the longest, are a third of it. [byte]"""
SILENCES = 2.5
"""A peer that said nothing for so many iamalive intervals is gone."""
ACCOUNT_INTERVAL = 3.0  # [s]


@dataclass
class SubscriberConnection:
    """One connection from a subscriber.

    Attributes:
        outlet: The feed that it gets.
        peer: What is known of it.
        door: Whether it is let in.
        delivery: Its events.
        writer: The connection.
        number: Tells it from all others.
    """

    outlet: LiveFeed
    peer: SubscriberState
    door: SubscriberGate
    delivery: Delivery
    writer: asyncio.StreamWriter
    number: int

    def shown(self) -> dict[str, Any]:
        """Return what the status page shows of it.  Called from another thread as well."""
        peer = self.peer
        passed, head = peer.reach.passed_to, self.outlet.hub.live().positions
        return {
            "ivoid": peer.name,
            "feed": self.outlet.feed.name,
            "filters": [one.text for one in peer.filters.filters],
            "sent": peer.sent,
            "acked": peer.acked,
            "naked": peer.naked,
            "unacked": peer.unacked,
            "lag": sum(max(0, end - passed.get(spot, end)) for spot, end in head.items()),
        }


class SubscriberService:
    """Our side of connections from subscribers.

    Args:
        settings: The gateway's.
        book: Where accounts go.
        metrics: The process's metrics.
        board: What the status page shows.
        trust: Judges their signatures; None where none are asked for.
    """

    def __init__(
        self,
        settings: Settings,
        book: AccountWriter,
        metrics: GatewayMetrics,
        board: StatusModel,
        trust: Trust | None = None,
    ) -> None:
        self._settings, self._book, self._metrics, self._trust = settings, book, metrics, trust
        self._board = board
        self._sessions = count(now_ms())
        self._acked, self._naked = (metrics.answered.labels(answer) for answer in ("ack", "nak"))

    def conversation(self, outlet: LiveFeed) -> Converse:
        """Return what to do with a connection from a subscriber of *outlet*."""
        return partial(self._converse, outlet)

    async def _converse(
        self, outlet: LiveFeed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one subscriber until it leaves or falls silent."""
        writer.transport.set_write_buffer_limits(high=BUFFER)
        session = self._begin(outlet, writer)
        writer.write(encode_frame(encode_now(Transport(AUTHENTICATE, self._settings.ivorn, params=OFFER))))
        log.info("subscriber %s came to feed %s", _name(writer), outlet.feed.name)
        try:
            with self._board.subscriber(_name(writer), session):
                await first_of(
                    self._listen(session, reader),
                    self._deliver(session),
                    self._keep_alive(session),
                    self._account_now_and_then(session),
                )
        except NotAdmittedError as error:
            log.info("subscriber %s is not let in: %s", _name(writer), error)
            self._metrics.dropped.labels("subscriber", "unsigned").inc()
            writer.write(encode_frame(encode_now(nak(None, self._settings.ivorn, str(error)))))
        finally:
            self._end(session)

    def _begin(self, outlet: LiveFeed, writer: asyncio.StreamWriter) -> SubscriberConnection:
        cursor = outlet.hub.live()
        now = asyncio.get_running_loop().time()
        peer = SubscriberState(FilterList(), heard=now, reach=AckTracker(cursor.positions))
        number = next(self._sessions)
        delivery = Delivery(outlet, peer, writer, cursor, number)
        door = SubscriberGate(self._settings.ivorn, self._trust, self._metrics)
        return SubscriberConnection(outlet, peer, door, delivery, writer, number)

    def _end(self, session: SubscriberConnection) -> None:
        peer = session.peer
        self._account(session)
        session.delivery.remember()
        said = peer.name or "without a name"
        log.info(
            "subscriber %s (%s) left; sent %d, acked %d", _name(session.writer), said, peer.sent, peer.acked
        )

    async def _listen(self, session: SubscriberConnection, reader: asyncio.StreamReader) -> None:
        clock = asyncio.get_running_loop()
        try:
            limits = self._settings.doors.limits
            incoming = messages(reader, max_length=MAX_MESSAGE, frame_timeout=limits.frame_timeout)
            async for message in incoming:
                self._hear(session, message, clock.time())
        except (FrameError, SilenceError) as error:
            reason = "frame" if isinstance(error, FrameError) else "slow"
            self._metrics.dropped.labels("subscriber", reason).inc()
            log.info("subscriber %s is disconnected: %s", _name(session.writer), error)

    def _hear(self, session: SubscriberConnection, message: bytes, now: float) -> None:
        peer = session.peer
        acked, naked = peer.acked, peer.naked
        try:
            filters = peer.receive(message, now)
        except XMLRefusedError as error:
            log.info("subscriber %s said what is no message: %s", _name(session.writer), error)
            return
        if peer.acked > acked:
            self._acked.inc()
        elif peer.naked > naked:
            self._naked.inc()
        if filters is not None:
            session.door.answer(message)
            self._take_filters(session, filters)
        session.delivery.introduced(peer.name or _host(session.writer))

    def _take_filters(self, session: SubscriberConnection, filters: FilterList) -> None:
        if filters.refused:
            told = filters_refused(self._settings.ivorn, filters.refused)
            session.writer.write(encode_frame(encode_now(told)))
        if filters.filters or filters.refused:
            self._metrics.filters.labels("taken").inc(len(filters.filters))
            self._metrics.filters.labels("refused").inc(len(filters.refused))
            texts = [one.text for one in filters.filters]
            log.info(
                "subscriber %s filters by %s; refused: %s", _name(session.writer), texts, filters.refused
            )

    async def _deliver(self, session: SubscriberConnection) -> None:
        await session.door.opened(self._settings.signatures.answer_timeout)
        await session.delivery.run()

    async def _keep_alive(self, session: SubscriberConnection) -> None:
        clock, interval, writer = asyncio.get_running_loop(), self._settings.iamalive, session.writer
        while session.peer.silent_for(clock.time()) <= SILENCES * interval:
            await asyncio.sleep(interval)
            if writer.transport.get_write_buffer_size() < BUFFER:
                writer.write(
                    encode_frame(encode_now(Transport(IAMALIVE, self._settings.ivorn, params=OFFER)))
                )
        log.info("subscriber %s answered nothing for %g s", _name(writer), SILENCES * interval)
        self._metrics.dropped.labels("subscriber", "silent").inc()

    async def _account_now_and_then(self, session: SubscriberConnection) -> None:
        written, peer = (0, 0, 0), session.peer
        while True:
            await asyncio.sleep(ACCOUNT_INTERVAL)
            session.delivery.remember()
            if (peer.sent, peer.acked, peer.naked) != written:
                written = (peer.sent, peer.acked, peer.naked)
                self._account(session)

    def _account(self, session: SubscriberConnection) -> None:
        peer, number = session.peer, session.number
        if not peer.sent:
            return
        lost = {"nak": peer.naked, "unacked": peer.unacked}
        rejected = {reason: events for reason, events in lost.items() if events}
        source = f"vtp-subscribers/{self._settings.ivorn}"
        self._book.post(
            Account(STAGE_OUT, source, 0, number, number, peer.sent, delivered=peer.acked, rejected=rejected)
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


def _host(writer: asyncio.StreamWriter) -> str:
    return str((writer.get_extra_info("peername") or ("?", 0))[0])
