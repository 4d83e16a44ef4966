"""All feeds of a gateway, each at its own address."""

from collections import Counter
from collections.abc import Sequence

from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.fanout.delivery import LiveFeed
from nightwire.gateway.fanout.hub import Hubs
from nightwire.gateway.fanout.positions import PositionStore
from nightwire.gateway.fanout.subscribers import SubscriberService
from nightwire.gateway.gateway_settings import Settings
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import ConnectionLimiter
from nightwire.gateway.net.server import Endpoint, Listener
from nightwire.gateway.net.tls import ServerTLS
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.roles import role_label
from nightwire.gateway.voevent.test_event import is_test_of


class FeedListeners:
    """The sockets that subscribers connect to.

    Args:
        settings: What the gateway was told.
        subscribers: Our side of connections from subscribers.
        outlets: The feeds, the default one first.
        metrics: The process's metrics.
        board: What the status page shows.
        tls: Our certificate, where there is one.
    """

    def __init__(
        self,
        settings: Settings,
        subscribers: SubscriberService,
        outlets: list[LiveFeed],
        metrics: GatewayMetrics,
        board: StatusModel,
        tls: ServerTLS | None,
    ) -> None:
        self._outlets, self._metrics, self._board = outlets, metrics, board
        for one in outlets:
            board.feed(one.feed.name)
        limits = settings.doors.limits
        self._listeners = [
            Listener(
                Endpoint(
                    "subscriber",
                    one.feed.address,
                    ConnectionLimiter(one.feed.access, limits),
                    metrics,
                    board,
                    tls=tls,
                ),
                subscribers.conversation(one),
            )
            for one in outlets
        ]

    async def start(self) -> list[Address]:
        """Listen; return the addresses, in the order of the feeds.

        Raises:
            OSError: One of them is taken.
        """
        return [await one.start() for one in self._listeners]

    def came(self, events: Sequence[Event]) -> None:
        """Note new events, each on the feeds that it came on."""
        for one in self._outlets:
            found = [event for event in events if one.hub.carries(event)]
            if not found:
                continue
            self._board.published(one.feed.name, found[-1].ivorn, len(found))
            for role, number in Counter(role_label(event.role) for event in found).items():
                self._metrics.feed_events.labels(one.feed.name, role).inc(number)

    def refuse_new(self) -> None:
        """Accept no more connections."""
        for one in self._listeners:
            one.refuse_new()

    async def finish(self, patience: float) -> None:
        """Wait at most *patience* [s], for each feed, for conversations to end, then end them."""
        for one in self._listeners:
            await one.finish(patience)


def live_feeds(
    settings: Settings, hubs: Hubs, metrics: GatewayMetrics, positions: PositionStore | None
) -> list[LiveFeed]:
    """Return the feeds of *settings* with what their events go out with."""

    def is_own_test(event: Event) -> bool:
        return event.role == "test" and is_test_of(settings.ivorn, event.ivorn)

    return [
        LiveFeed(
            feed,
            hubs.of(feed.topics),
            metrics,
            settings.ivorn,
            settings.subscriber_max_frame,
            positions if feed.replay else None,
            is_own_test,
        )
        for feed in settings.feeds
    ]
