"""Events on their way to one subscriber: what comes, and what it missed while it was away."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from nightwire.core.runtime import now_ms
from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.eventlog.ring_buffer import Cursor
from nightwire.gateway.fanout.ack_tracker import resume_at
from nightwire.gateway.fanout.hub import Hub
from nightwire.gateway.fanout.policy import DeliveryPolicy, Withheld
from nightwire.gateway.fanout.positions import PositionStore
from nightwire.gateway.fanout.subscriber_state import SubscriberState
from nightwire.gateway.settings.feed import Feed
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.voevent.roles import role_label
from nightwire.gateway.vtp.frames import encode_frame
from nightwire.gateway.vtp.session import encode_now, filters_refused

log = logging.getLogger(__name__)


@dataclass
class LiveFeed:
    """A feed, and what its events go out with.

    Attributes:
        feed: The feed.
        hub: Where its events come from.
        metrics: The process's metrics.
        ivorn: IVOID of this gateway.
        max_frame: Longest event for peers that did not say what they take. [byte]
        positions: Where its subscribers stopped; None where they begin with what comes next.
        always: Events that pass the feed's roles whatever they are.
    """

    feed: Feed
    hub: Hub
    metrics: GatewayMetrics
    ivorn: str
    max_frame: int
    positions: PositionStore | None = None
    always: Callable[[Event], bool] = lambda _event: False
    said_too_large: bool = field(default=False, init=False)

    def count_withheld(self, event: Event, reason: Withheld) -> None:
        """Note that a subscriber does not get *event*."""
        self.metrics.withheld.labels(self.feed.name, reason.value).inc()
        if reason is Withheld.SIZE and not self.said_too_large:
            self.said_too_large = True
            log.warning(
                "feed %s: %s has %d bytes; it goes only to subscribers that say they take so much "
                "(said once, see --subscriber-max-frame)",
                self.feed.name,
                event.ivorn,
                len(event.document),
            )


class Delivery:
    """Deliver a feed to one subscriber.

    Args:
        outlet: The feed.
        peer: The subscriber.
        writer: The connection.
        cursor: Where it begins.
        session: Number of this connection.
    """

    def __init__(
        self,
        outlet: LiveFeed,
        peer: SubscriberState,
        writer: asyncio.StreamWriter,
        cursor: Cursor,
        session: int,
    ) -> None:
        self._outlet, self._peer, self._writer, self._session = outlet, peer, writer, session
        self._live = cursor
        self._who: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def introduced(self, who: str) -> None:
        """Note who the peer is; the first time counts."""
        if not self._who.done():
            self._who.set_result(who)

    def remember(self) -> None:
        """Keep up to where the peer has acknowledged, for when it returns."""
        book = self._outlet.positions
        if book is not None and self._who.done():
            book.store(
                (self._outlet.feed.name, self._who.result()), self._session, self._peer.reach.positions
            )

    async def run(self) -> None:
        """Deliver, for ever: at once what comes; and from where the peer stopped as soon as that is known."""
        live = asyncio.ensure_future(self._follow(self._live))
        missed = asyncio.ensure_future(self._missed())
        try:
            await asyncio.wait({live, missed}, return_when=asyncio.FIRST_COMPLETED)
            if live.done() or (found := missed.result()) is None:
                await live
                return
            live.cancel()
            await asyncio.gather(live, return_exceptions=True)
            start = resume_at(*found, self._peer.reach.passed_to)
            self._peer.reach.go_back(start)
            await self._follow(self._outlet.hub.resume(start))
        finally:
            for task in (live, missed):
                task.cancel()
            await asyncio.gather(live, missed, return_exceptions=True)

    async def _missed(self) -> tuple[Positions, Positions] | None:
        """Return up to where the peer acknowledged, as soon as it says who it is, and how far back it goes.

        None where it begins with what comes next.
        """
        outlet, book = self._outlet, self._outlet.positions
        if book is None:
            return None
        who = await self._who
        acked = book.claim((outlet.feed.name, who), self._session)
        asked = self._peer.back
        if acked is None:
            self.remember()  # it is known from now on, however soon we die
        if acked is None and asked is None:
            return None
        back = outlet.feed.replay if asked is None else min(asked, outlet.feed.replay)
        try:
            oldest = await outlet.hub.since(now_ms() - round(1000 * back))
        except KafkaException as error:
            log.warning("subscriber %s begins with what comes next, Kafka failed: %s", who, error)
            return None
        log.info(
            "subscriber %s returns to feed %s; served from at most %g s ago", who, outlet.feed.name, back
        )
        return (oldest if asked is not None or acked is None else acked), oldest

    async def _follow(self, cursor: Cursor) -> None:
        outlet, peer = self._outlet, self._peer
        carriage = DeliveryPolicy(outlet.feed, outlet.hub.wants, outlet.always)
        async for event in outlet.hub.events(cursor):
            if peer.reach.had(event):
                peer.reach.passed(event)
            elif reason := self._withholds(carriage, event):
                peer.reach.passed(event)
                outlet.count_withheld(event, reason)
            else:
                peer.event_sent(event)
                self._writer.write(encode_frame(event.document))
                outlet.metrics.sent.labels(outlet.feed.name, role_label(event.role)).inc()
                await self._writer.drain()
            if peer.filters.switched_off:
                told = filters_refused(outlet.ivorn, peer.filters.take_switched_off())
                self._writer.write(encode_frame(encode_now(told)))

    def _withholds(self, carriage: DeliveryPolicy, event: Event) -> Withheld | None:
        limit = self._outlet.max_frame if self._peer.takes is None else self._peer.takes
        if len(event.document) > limit:
            return Withheld.SIZE
        return carriage.withholds(event, self._peer.filters)
