"""Events on their way to one subscriber: new ones, and those it missed while it was away."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from nightwire.core.runtime import now_ms
from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.eventlog.ring_buffer import Cursor
from nightwire.gateway.fanout.ack_tracker import resume_at
from nightwire.gateway.fanout.feed import Feed
from nightwire.gateway.fanout.hub import Hub
from nightwire.gateway.fanout.identity import Peer
from nightwire.gateway.fanout.policy import DeliveryPolicy, Withheld
from nightwire.gateway.fanout.positions import PositionStore
from nightwire.gateway.fanout.subscriber_state import SubscriberState
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.voevent.roles import role_label
from nightwire.gateway.vtp.conversation import SlownessError
from nightwire.gateway.vtp.frames import encode_frame
from nightwire.gateway.vtp.session import MAX_ECHO, encode_now, filters_refused, nak

log = logging.getLogger(__name__)

MOST_FRAMES, LONG = 32, 32 << 10
"""Events are written together: at most so many, and none after one so long. [byte]"""


@dataclass
class LiveFeed:
    """A feed, and what its events go out with.

    Attributes:
        feed: The feed.
        hub: Where its events come from.
        metrics: The process's metrics.
        ivoid: Of this gateway.
        max_frame: Longest event for peers that gave no limit of their own. [byte]
        read_timeout: Longest time that a peer may take to read what fills its buffer. [s]
        positions: Where its subscribers stopped; None where they begin with what comes next.
        always: Events that pass the feed's roles whatever they are.
    """

    feed: Feed
    hub: Hub
    metrics: GatewayMetrics
    ivoid: str
    max_frame: int
    read_timeout: float
    positions: PositionStore | None = None
    always: Callable[[Event], bool] = lambda _event: False
    logged_too_large: bool = field(default=False, init=False)

    def count_withheld(self, event: Event, reason: Withheld) -> None:
        """Note that a subscriber does not get *event*."""
        self.metrics.withheld.labels(self.feed.name, reason.value).inc()
        if reason is Withheld.SIZE and not self.logged_too_large:
            self.logged_too_large = True
            log.warning(
                "feed %s: %s has %d bytes; it goes only to subscribers that say they take so much "
                "(logged once, see --subscriber-max-frame)",
                self.feed.name,
                event.ivorn,
                len(event.document),
            )


class Delivery:
    """Deliver a feed to one subscriber.

    Args:
        live_feed: The feed.
        peer: The subscriber.
        writer: The connection.
        cursor: Where it begins.
        session: Number of this connection.
    """

    def __init__(
        self,
        live_feed: LiveFeed,
        peer: SubscriberState,
        writer: asyncio.StreamWriter,
        cursor: Cursor,
        session: int,
    ) -> None:
        self._live_feed, self._peer, self._writer, self._session = live_feed, peer, writer, session
        self._cursor = cursor
        self._identity: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

    @property
    def is_introduced(self) -> bool:
        """Say whether it is known who the peer is."""
        return self._identity.done()

    def introduced(self, identity: Peer) -> None:
        """Note who the peer is, once."""
        self._identity.set_result(identity)

    def save_position(self) -> None:
        """Keep up to where the peer has acknowledged, for when it returns."""
        store = self._live_feed.positions
        if store is not None and self.is_introduced:
            store.store(self._identity.result(), self._session, self._peer.acks.acked_to)

    def close(self) -> None:
        """Keep the position for the last time."""
        self.save_position()
        store = self._live_feed.positions
        if store is not None and self.is_introduced:
            store.release(self._identity.result(), self._session)

    async def run(self) -> None:
        """Deliver new events, for ever; go back to where the peer stopped once that is known."""
        live = asyncio.ensure_future(self._follow(self._cursor))
        missed = asyncio.ensure_future(self._missed())
        try:
            await asyncio.wait({live, missed}, return_when=asyncio.FIRST_COMPLETED)
            if live.done() or (found := missed.result()) is None:
                await live
                return
            live.cancel()
            await asyncio.gather(live, return_exceptions=True)
            start = resume_at(*found, self._peer.acks.next)
            self._peer.acks.go_back(start)
            await self._follow(self._live_feed.hub.resume(start))
        finally:
            for task in (live, missed):
                task.cancel()
            await asyncio.gather(live, missed, return_exceptions=True)

    async def _missed(self) -> tuple[Positions, Positions] | None:
        """Return where the peer stopped, as soon as it names itself, and how far back it is served.

        None where it begins with what comes next.
        """
        live_feed, store = self._live_feed, self._live_feed.positions
        if store is None:
            return None
        identity = await self._identity
        acked, namesake = store.claim(identity, self._session)
        if namesake is not None:
            self._tell(namesake.value.format(name=identity.name[:MAX_ECHO]))
        asked = self._peer.replay
        if acked is None:
            self.save_position()  # it is known from now on, however soon we die
        if acked is None and asked is None:
            return None
        longest = live_feed.feed.replay
        replay = longest if asked is None else min(asked, longest)
        try:
            oldest = await live_feed.hub.since(now_ms() - round(1000 * replay))
        except KafkaException as error:
            log.warning("subscriber %s begins with what comes next, Kafka failed: %s", identity.name, error)
            return None
        log.info(
            "subscriber %s returns to feed %s; served from at most %g s ago",
            identity.name,
            live_feed.feed.name,
            replay,
        )
        return (oldest if asked is not None or acked is None else acked), oldest

    def _tell(self, warning: str) -> None:
        log.warning("subscriber at %s is told: %s", self._identity.result().owner, warning)
        self._writer.write(encode_frame(encode_now(nak(None, self._live_feed.ivoid, warning))))

    async def _follow(self, cursor: Cursor) -> None:
        live_feed, peer = self._live_feed, self._peer
        policy = DeliveryPolicy(live_feed.feed, live_feed.hub.matches, live_feed.always)
        async for piece in live_feed.hub.pieces(cursor):
            frames: list[bytes] = []
            for event in piece:
                if self._goes_out(policy, event):
                    frames.append(encode_frame(event.document))
                if len(frames) == MOST_FRAMES or len(event.document) > LONG:
                    await self._write(frames)
            await self._write(frames)
            if peer.filters.switched_off:
                message = filters_refused(live_feed.ivoid, peer.filters.take_switched_off())
                self._writer.write(encode_frame(encode_now(message)))

    def _goes_out(self, policy: DeliveryPolicy, event: Event) -> bool:
        """Say whether *event* goes to the peer, and note it."""
        peer, live_feed = self._peer, self._live_feed
        if not peer.acks.had(event):
            if (reason := self._withholds(policy, event)) is None:
                peer.event_sent(event)
                live_feed.metrics.sent.labels(live_feed.feed.name, role_label(event.role)).inc()
                return True
            live_feed.count_withheld(event, reason)
        peer.acks.withheld(event)
        return False

    async def _write(self, frames: list[bytes]) -> None:
        """Write *frames*, which count as sent, and empty the list.

        Raises:
            SlownessError: The peer reads too little.
        """
        self._writer.writelines(frames)
        frames.clear()
        waits = self._writer.transport.get_write_buffer_size() > 0
        timeout = self._live_feed.read_timeout
        try:
            async with asyncio.timeout(timeout) if waits else nullcontext():
                await self._writer.drain()
        except TimeoutError:
            raise SlownessError(f"it read too little within {timeout:g} s") from None

    def _withholds(self, policy: DeliveryPolicy, event: Event) -> Withheld | None:
        own = self._peer.max_frame
        if len(event.document) > (self._live_feed.max_frame if own is None else own):
            return Withheld.SIZE
        return policy.withholds(event, self._peer.filters)
