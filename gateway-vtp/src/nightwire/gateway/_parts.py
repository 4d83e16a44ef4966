"""What one gateway is made of, put together."""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from datetime import timedelta

from confluent_kafka import Message

from nightwire.core.clock import now_ms
from nightwire.core.dead_letters import bury_message
from nightwire.core.kafka import Writer, consumer, producer
from nightwire.gateway._admission import Admission
from nightwire.gateway._author_listener import AuthorListener
from nightwire.gateway._authors import Authors
from nightwire.gateway._backlog import Archive, Backlog
from nightwire.gateway._beginning import Beginning, known_events, known_names
from nightwire.gateway._board import Board
from nightwire.gateway._book import AccountBook, Tally
from nightwire.gateway._cited import CitedEvents
from nightwire.gateway._demands import EventDemand
from nightwire.gateway._feed import feed_topics
from nightwire.gateway._feeds import Feeds, outlets
from nightwire.gateway._gcn_mirror import GcnMirror
from nightwire.gateway._handling import Handlers
from nightwire.gateway._hubs import Hubs
from nightwire.gateway._index import EventIndex
from nightwire.gateway._kafka import LoopProducer
from nightwire.gateway._limits import Guard, Intake
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._positions import Clients, PositionBook
from nightwire.gateway._render import Renderer
from nightwire.gateway._ring import Event, Positions, Ring
from nightwire.gateway._server import Door
from nightwire.gateway._settings import Settings
from nightwire.gateway._signing import PASSWORD_VARIABLE, SigningKey, open_signing_key
from nightwire.gateway._subscribers import Subscribers
from nightwire.gateway._times import load_time_scales
from nightwire.gateway._tls import ServerTLS
from nightwire.gateway._trust import Trust, TrustFiles
from nightwire.gateway._upstream import Upstreams
from nightwire.gateway._validation import compile_schemas
from nightwire.schemas.registry import AlertDecoder, SchemaRegistry
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)


class Parts:
    """What a gateway is made of.  Made in the event loop that it serves.

    Args:
        settings: What the gateway was told.
        metrics: The process's metrics.
        begin: Where it begins.
        board: What its status page shows.
    """

    def __init__(self, settings: Settings, metrics: GatewayMetrics, begin: Beginning, board: Board) -> None:
        self._settings, self._metrics = settings, metrics
        self._loop = asyncio.get_running_loop()
        self._decoder = _decoder(settings)
        self._index = known_events(settings)
        self._log = LoopProducer(producer(settings.bootstrap, linger_ms=1), self._loop)
        self._dead_letters: Writer | None = None
        self.book = AccountBook(lambda: Writer(producer(settings.bootstrap), flush_timeout=30))
        instance = f"{settings.ivorn}@{socket.gethostname()}"
        self.admission = Admission(self._index, self._log, instance)
        started = now_ms()
        self._hubs = self._make_hubs(begin)
        self._positions = self._make_positions(begin)
        handled = [topic for topic in feed_topics(settings.feeds) if not topic.startswith("alerts.")]
        self.handlers = Handlers(settings.handlers, self._hubs.of(handled), begin, settings.state, metrics)
        shared = settings, self.admission, self.book
        trust = _trust(settings)
        of_brokers = EventDemand("broker", trust.get("brokers"), metrics)
        of_authors = EventDemand("author", trust.get("authors"), metrics)
        signing = _signing_key(settings)
        self.upstreams = Upstreams(
            *shared, Tally("vtp-brokers", started), metrics, of_brokers, board, signing
        )
        self.gcn = self._gcn(begin)
        doors = settings.doors
        self.intake = Intake(doors.author_memory)
        authors = Authors(*shared, Tally("vtp-authors", started), metrics, of_authors, self.intake, board)
        subscribers = Subscribers(settings, self.book, metrics, board, trust.get("subscribers"))
        tls = None if doors.tls.certificate is None else ServerTLS(doors.tls)
        at_authors = Guard(doors.authors, doors.limits)
        self.authors = AuthorListener(
            Door("author", settings.authors, at_authors, metrics, board, tls=tls), authors.line
        )
        feeds = outlets(settings, self._hubs, metrics, self._positions)
        self.subscribers = Feeds(settings, subscribers, feeds, metrics, board, tls)

    def warm_up(self) -> None:
        """Do once what would make the first event slow: schemas, leap seconds, Kafka's metadata.  Blocks."""
        compile_schemas()
        load_time_scales()
        self._log.warm_up(VOEVENTS)
        if self._positions is not None:
            self._positions.load()

    def renderer(self, index: EventIndex, names: EventIndex) -> Renderer:
        """Return a renderer for the thread that opened the indexes."""

        def is_first(digest: bytes, partition: int, offset: int) -> bool:
            return index.first(digest) in (None, (partition, offset))

        shapes = {topic: feed.template for feed in self._settings.feeds for topic in feed.topics}
        cited = CitedEvents(names, lambda: consumer(self._settings.bootstrap))
        return Renderer(is_first, self._decoder, cited, shapes)

    def publish(self, events: Sequence[Event], hashes: Sequence[bytes]) -> None:
        """Hand on what the follower read; returns when it is taken.  Called from the follower's thread."""
        asyncio.run_coroutine_threadsafe(self._publish(events, list(hashes)), self._loop).result()

    def bury(self, message: Message, reason: str) -> None:
        """Move a record that cannot be read to the dead letters.  Called from the follower's thread."""
        topic = str(message.topic())
        source = f"{topic}[{message.partition()}]@{message.offset()}"
        log.warning("%s cannot be read and is no event: %s", source, reason)
        self._dead_letters = self._dead_letters or Writer(producer(self._settings.bootstrap))
        bury_message(self._dead_letters, message, stage="gateway", reason=reason)
        self._dead_letters.flush()
        self._metrics.dead_lettered.labels(topic).inc()

    def close(self) -> None:
        """Flush and let go of Kafka.  Blocks."""
        self._hubs.close()
        if self._positions is not None:
            self._positions.close(30.0)
        if missing := self._log.close(10.0):
            log.error("%d events are not acknowledged by Kafka; their authors were not either", missing)
        if not self.book.close(30.0):
            log.error("accounts could not be written to Kafka")
        log.info("stopped")

    async def _publish(self, events: Sequence[Event], hashes: list[bytes]) -> None:
        await self.admission.indexed(hashes)
        self._hubs.publish(events)
        self.subscribers.came(events)

    def _gcn(self, begin: Beginning) -> GcnMirror | None:
        if (gcn := self._settings.gcn) is None:
            return None

        def writer() -> Writer:
            return Writer(producer(self._settings.bootstrap), flush_timeout=30)

        return GcnMirror(gcn, begin.written, self.admission, self.book, self._metrics, writer)

    def _make_hubs(self, begin: Beginning) -> Hubs:
        settings = self._settings
        backlog = Backlog(
            lambda: consumer(settings.bootstrap, queued_max_messages_kbytes=8 << 10),
            lambda: self.renderer(known_events(settings), known_names(settings)),
        )

        def make_ring(live: Positions) -> Ring:
            return Ring(live, max_events=settings.ring_events, max_bytes=settings.ring_bytes)

        return Hubs(begin.live, make_ring, Archive(backlog, self._metrics), self._metrics)

    def _make_positions(self, begin: Beginning) -> PositionBook | None:
        """Return where subscribers are remembered; None where no feed remembers any."""
        kafka = self._settings.bootstrap
        if not any(feed.replay for feed in self._settings.feeds):
            return None
        clients = Clients(kafka, lambda: consumer(kafka), lambda: Writer(producer(kafka), flush_timeout=30))
        return PositionBook(clients, begin.log)


def _decoder(settings: Settings) -> AlertDecoder | None:
    if settings.registry is None or not any(feed.has_alerts for feed in settings.feeds):
        return None
    return AlertDecoder(SchemaRegistry(settings.registry))


def _trust(settings: Settings) -> dict[str, Trust]:
    """Return what judges the signatures of each kind of peer of whom they are required."""
    signatures = settings.signatures
    if not signatures.required or signatures.keyring is None:
        return {}
    files = TrustFiles(signatures.keyring, signatures.policy)
    trust = Trust(files, timedelta(days=settings.remembered_days))
    return dict.fromkeys(signatures.required, trust)


def _signing_key(settings: Settings) -> SigningKey | None:
    path = settings.signatures.key
    return None if path is None else open_signing_key(path, os.environ.get(PASSWORD_VARIABLE))
