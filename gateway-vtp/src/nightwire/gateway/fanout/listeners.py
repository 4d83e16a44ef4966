"""All feeds of a gateway, each at its own address."""

from collections import Counter
from collections.abc import Sequence

from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.fanout.delivery import LiveFeed
from nightwire.gateway.fanout.feed import SubscriberSettings
from nightwire.gateway.fanout.hub import Hubs
from nightwire.gateway.fanout.positions import PositionStore
from nightwire.gateway.fanout.subscriber_state import SILENCES
from nightwire.gateway.fanout.subscribers import SubscriberService
from nightwire.gateway.net.access import Access
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import ConnectionLimiter
from nightwire.gateway.net.server import Endpoint, Listener
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.roles import role_label
from nightwire.gateway.voevent.test_event import is_test_of
from nightwire.schemas.serving import ServerTLS


class FeedListeners:
    """The sockets that subscribers connect to.

    Args:
        settings: Limits of connections.
        subscribers: Our side of connections from subscribers.
        live_feeds: The feeds, the default one first.
        metrics: The process's metrics.
        status: Shows the feeds.
        tls: Our certificate, where there is one.
    """

    def __init__(
        self,
        settings: SubscriberSettings,
        subscribers: SubscriberService,
        live_feeds: list[LiveFeed],
        metrics: GatewayMetrics,
        status: StatusModel,
        tls: ServerTLS | None,
    ) -> None:
        self._live_feeds, self._metrics, self._status = live_feeds, metrics, status
        for one in live_feeds:
            status.feed(one.feed.name)

        def listener(one: LiveFeed, address: Address, access: Access) -> Listener:
            limiter = ConnectionLimiter(access, settings.limits)
            endpoint = Endpoint("subscriber", address, limiter, metrics, status, tls=tls)
            return Listener(endpoint, subscribers.conversation(one))

        self._listeners = [listener(one, one.feed.address, one.feed.access) for one in live_feeds]
        if (door := settings.tls_door) is not None:
            self._listeners.append(listener(live_feeds[0], door.address, door.access))

    async def start(self) -> list[Address]:
        """Listen; return the addresses, in the order of the feeds, that of the TLS door last.

        Raises:
            OSError: One of them is taken.
        """
        return [await one.start() for one in self._listeners]

    def count(self, events: Sequence[Event]) -> None:
        """Count new events, each on the feeds that carry it."""
        for one in self._live_feeds:
            found = [event for event in events if one.hub.carries(event)]
            if not found:
                continue
            self._status.published(one.feed.name, found[-1].ivorn, len(found))
            for role, number in Counter(role_label(event.role) for event in found).items():
                self._metrics.feed_events.labels(one.feed.name, role).inc(number)

    def refuse_new(self) -> None:
        """Accept no more connections."""
        for one in self._listeners:
            one.refuse_new()

    async def finish(self, timeout: float) -> None:
        """Wait at most *timeout* [s], for each feed, for conversations to end, then end them."""
        for one in self._listeners:
            await one.finish(timeout)


def live_feeds(
    ivoid: str,
    settings: SubscriberSettings,
    hubs: Hubs,
    metrics: GatewayMetrics,
    positions: PositionStore | None,
) -> list[LiveFeed]:
    """Return the feeds of the gateway *ivoid* with what their events go out with."""

    def is_own_test(event: Event) -> bool:
        return event.role == "test" and is_test_of(ivoid, event.ivorn)

    return [
        LiveFeed(
            feed,
            hubs.of(feed.topics),
            metrics,
            ivoid,
            settings.max_frame,
            SILENCES * settings.iamalive,
            positions if feed.replay else None,
            is_own_test,
        )
        for feed in settings.feeds
    ]
