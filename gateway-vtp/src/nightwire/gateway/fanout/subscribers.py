"""Broker to subscribers: every event from Kafka to every peer, at the peer's own pace."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from nightwire.core.accounting import Account
from nightwire.core.runtime import now_ms
from nightwire.gateway.eventlog.accounts import STAGE_OUT, AccountWriter
from nightwire.gateway.fanout.ack_tracker import AckTracker
from nightwire.gateway.fanout.delivery import Delivery, LiveFeed
from nightwire.gateway.fanout.feed import SubscriberSettings
from nightwire.gateway.fanout.identity import Peer, owner_of
from nightwire.gateway.fanout.subscriber_state import SILENCES, SubscriberState
from nightwire.gateway.net.limits import FloodError, UnaskedLimiter
from nightwire.gateway.net.memory import MemoryBudget, MemoryExceededError
from nightwire.gateway.net.server import Converse
from nightwire.gateway.signing.requirements import NotAdmittedError, SubscriberGate
from nightwire.gateway.signing.trust import Trust
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.conversation import SlownessError, messages
from nightwire.gateway.vtp.frames import FrameError, encode_frame
from nightwire.gateway.vtp.session import encode_now, filters_refused, nak
from nightwire.gateway.vtp.transport import AUTHENTICATE, IAMALIVE, Transport
from nightwire.gateway.xpath.filters import OFFER, FilterList

log = logging.getLogger(__name__)

BUFFER = 256 << 10
"""Most that waits for a peer that does not read, before it falls behind. [byte]"""
MAX_MESSAGE = 64 << 10
"""Longest message of a subscriber: the most filters of the longest kind take a third. [byte]"""
ACCOUNT_INTERVAL = 3.0  # [s]
DROPPED: dict[type[Exception], str] = {
    FrameError: "frame",
    SlownessError: "slow",
    FloodError: "flood",
    MemoryExceededError: "memory",
}
"""Why we hang up on a subscriber, as the metrics name it."""


@dataclass
class SubscriberConnection:
    """One connection from a subscriber.

    Attributes:
        live_feed: The feed that it gets.
        peer: What is known of it.
        gate: Whether it is let in.
        delivery: Its events.
        writer: The connection.
        number: Tells it from all others.
    """

    live_feed: LiveFeed
    peer: SubscriberState
    gate: SubscriberGate
    delivery: Delivery
    writer: asyncio.StreamWriter
    number: int

    @property
    def host(self) -> str:
        """Address of the peer."""
        return host_of(self.writer)

    def __str__(self) -> str:
        host, port = (self.writer.get_extra_info("peername") or ("?", 0))[:2]
        return f"{host}:{port}"

    def identity(self) -> Peer:
        """Return who the peer says it is, with what it proved."""
        owner = owner_of(self.gate.signer, self.writer.get_extra_info("peercert"), self.host)
        return Peer(self.live_feed.feed.name, self.peer.known_as(self.host), owner)

    def send(self, message: Transport) -> None:
        """Send *message*."""
        self.writer.write(encode_frame(encode_now(message)))

    def status(self) -> dict[str, Any]:
        """Return its row of the status page.  Called from another thread as well."""
        peer = self.peer
        following, head = peer.acks.next, self.live_feed.hub.live().positions
        return {
            "ivoid": peer.name,
            "feed": self.live_feed.feed.name,
            "filters": [one.text for one in peer.filters.filters],
            "sent": peer.sent,
            "acked": peer.acked,
            "naked": peer.naked,
            "unacked": peer.unacked,
            "lag": sum(
                max(0, end - following.get(topic_partition, end)) for topic_partition, end in head.items()
            ),
        }


def host_of(writer: asyncio.StreamWriter) -> str:
    """Return the address of the peer."""
    return str((writer.get_extra_info("peername") or ("?", 0))[0])


class SubscriberService:
    """Our side of connections from subscribers.

    Args:
        ivoid: Of this gateway.
        settings: Times and sizes.
        accounts: Writes accounts to Kafka.
        metrics: The process's metrics.
        status: Shows the connections.
        memory: Bounds the memory for their messages.
        trust: Verifies their signatures; None where none are asked for.
    """

    def __init__(
        self,
        ivoid: str,
        settings: SubscriberSettings,
        accounts: AccountWriter,
        metrics: GatewayMetrics,
        status: StatusModel,
        memory: MemoryBudget,
        trust: Trust | None = None,
    ) -> None:
        self._ivoid, self._settings = ivoid, settings
        self._accounts, self._metrics, self._status, self._trust = accounts, metrics, status, trust
        self._memory, self._unasked = memory, UnaskedLimiter()
        self._numbers = count(now_ms())
        self._acked, self._naked = (metrics.answered.labels(answer) for answer in ("ack", "nak"))

    def conversation(self, live_feed: LiveFeed) -> Converse:
        """Return the conversation with a subscriber of *live_feed*."""
        return partial(self._converse, live_feed)

    async def _converse(
        self, live_feed: LiveFeed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one subscriber until it leaves or falls silent."""
        writer.transport.set_write_buffer_limits(high=BUFFER)
        connection = self._begin(live_feed, writer)
        connection.send(Transport(AUTHENTICATE, self._ivoid, params=OFFER))
        log.info("subscriber %s came to feed %s", connection, live_feed.feed.name)
        try:
            with self._status.subscriber(str(connection), connection):
                await first_of(
                    self._listen(connection, reader),
                    self._deliver(connection),
                    self._keep_alive(connection),
                    self._account_now_and_then(connection),
                )
        except NotAdmittedError as error:
            log.info("subscriber %s is not let in: %s", connection, error)
            self._metrics.dropped.labels("subscriber", "unsigned").inc()
            connection.send(nak(None, self._ivoid, str(error)))
        except tuple(DROPPED) as error:
            self._metrics.dropped.labels("subscriber", DROPPED[type(error)]).inc()
            log.info("subscriber %s is disconnected: %s", connection, error)
        finally:
            self._end(connection)

    def _begin(self, live_feed: LiveFeed, writer: asyncio.StreamWriter) -> SubscriberConnection:
        cursor = live_feed.hub.live()
        now = asyncio.get_running_loop().time()
        unasked = self._unasked.bucket(host_of(writer))
        acks = AckTracker(cursor.positions)
        peer = SubscriberState(FilterList(), last_message=now, acks=acks, unasked=unasked)
        number = next(self._numbers)
        delivery = Delivery(live_feed, peer, writer, cursor, number)
        gate = SubscriberGate(self._ivoid, self._trust, self._metrics)
        return SubscriberConnection(live_feed, peer, gate, delivery, writer, number)

    def _end(self, connection: SubscriberConnection) -> None:
        peer = connection.peer
        self._account(connection)
        connection.delivery.close()
        name = peer.name or "without a name"
        log.info("subscriber %s (%s) left; sent %d, acked %d", connection, name, peer.sent, peer.acked)

    async def _listen(self, connection: SubscriberConnection, reader: asyncio.StreamReader) -> None:
        clock, limit = asyncio.get_running_loop(), self._settings.limits.frame_timeout
        with self._memory.sender(connection.host, reader.set_exception) as hold:
            async for message in messages(reader, max_length=MAX_MESSAGE, frame_timeout=limit, hold=hold):
                self._receive(connection, message, clock.time())

    def _receive(self, connection: SubscriberConnection, message: bytes, now: float) -> None:
        peer = connection.peer
        acked, naked = peer.acked, peer.naked
        try:
            filters = peer.receive(message, now)
        except XMLRefusedError as error:
            log.info("subscriber %s sent what is no message: %s", connection, error)
            return
        if peer.acked > acked:
            self._acked.inc()
        elif peer.naked > naked:
            self._naked.inc()
        if filters is not None:
            connection.gate.verify(message)
            self._note_filters(connection, filters)
        if connection.gate.is_open and not connection.delivery.is_introduced:
            connection.delivery.introduced(connection.identity())

    def _note_filters(self, connection: SubscriberConnection, filters: FilterList) -> None:
        if filters.refused:
            connection.send(filters_refused(self._ivoid, filters.refused))
        if filters.filters or filters.refused:
            self._metrics.filters.labels("taken").inc(len(filters.filters))
            self._metrics.filters.labels("refused").inc(len(filters.refused))
            texts = [one.text for one in filters.filters]
            log.info("subscriber %s filters by %s; refused: %s", connection, texts, filters.refused)

    async def _deliver(self, connection: SubscriberConnection) -> None:
        await connection.gate.opened(self._settings.answer_timeout)
        await connection.delivery.run()

    async def _keep_alive(self, connection: SubscriberConnection) -> None:
        def send_iamalive() -> None:
            if connection.writer.transport.get_write_buffer_size() < BUFFER:
                connection.peer.owed += 1
                connection.send(Transport(IAMALIVE, self._ivoid, params=OFFER))

        interval = self._settings.iamalive
        await keep_alive(connection.peer, interval, send_iamalive)
        log.info("subscriber %s answered nothing for %g s", connection, SILENCES * interval)
        self._metrics.dropped.labels("subscriber", "silent").inc()

    async def _account_now_and_then(self, connection: SubscriberConnection) -> None:
        written, peer = (0, 0, 0), connection.peer
        while True:
            await asyncio.sleep(ACCOUNT_INTERVAL)
            connection.delivery.save_position()
            if (peer.sent, peer.acked, peer.naked) != written:
                written = (peer.sent, peer.acked, peer.naked)
                self._account(connection)

    def _account(self, connection: SubscriberConnection) -> None:
        peer, number = connection.peer, connection.number
        if not peer.sent:
            return
        lost = {"nak": peer.naked, "unacked": peer.unacked}
        rejected = {reason: events for reason, events in lost.items() if events}
        source = f"vtp-subscribers/{self._ivoid}"
        self._accounts.post(
            Account(STAGE_OUT, source, 0, number, number, peer.sent, delivered=peer.acked, rejected=rejected)
        )


async def keep_alive(peer: SubscriberState, interval: float, send_iamalive: Callable[[], None]) -> None:
    """Send an iamalive each *interval* [s]; return when *peer* has been silent for too long."""
    clock = asyncio.get_running_loop()
    next_iamalive = clock.time() + interval
    while (now := clock.time()) < (gone := peer.gone_at(interval)):
        if now >= next_iamalive:
            next_iamalive += interval
            send_iamalive()
        await asyncio.sleep(min(next_iamalive, gone) - now)


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
