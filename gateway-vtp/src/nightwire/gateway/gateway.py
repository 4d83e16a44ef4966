"""One gateway process: started in order, run, and stopped in order."""

import asyncio
import gc
import logging
import os
import socket
import threading
import time
from collections.abc import Sequence
from datetime import timedelta

from confluent_kafka import KafkaException, Message
from prometheus_client import CollectorRegistry

from nightwire.core.accounting import send_message_to_dead_letters
from nightwire.core.kafka import Writer, consumer, producer
from nightwire.core.runtime import Stop, now_ms
from nightwire.gateway.eventlog.accounts import AccountWriter, RejectionCounter
from nightwire.gateway.eventlog.decoder import CitedEvents, EventDecoder
from nightwire.gateway.eventlog.deduplicator import Deduplicator
from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.gateway.eventlog.follower import EventAccounts, Follower
from nightwire.gateway.eventlog.loop_producer import LoopProducer
from nightwire.gateway.eventlog.replay import ReplayReader, ReplayService
from nightwire.gateway.eventlog.ring_buffer import RingBuffer
from nightwire.gateway.eventlog.start_offsets import (
    StartOffsets,
    find_start_offsets,
    open_event_index,
    open_name_index,
)
from nightwire.gateway.eventlog.state_folder import claim_state
from nightwire.gateway.fanout.feed import feed_topics
from nightwire.gateway.fanout.feeds import FeedListeners, live_feeds
from nightwire.gateway.fanout.hub import Hubs
from nightwire.gateway.fanout.positions import KafkaClients, PositionStore
from nightwire.gateway.fanout.subscribers import SubscriberService
from nightwire.gateway.gateway_settings import Settings
from nightwire.gateway.handlers.service import HandlerService
from nightwire.gateway.ingest.author_listener import AuthorListener
from nightwire.gateway.ingest.authors import AuthorService
from nightwire.gateway.ingest.gcn_mirror import GcnMirror
from nightwire.gateway.ingest.test_events import send_test_events
from nightwire.gateway.ingest.upstream import UpstreamService
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import ConnectionLimiter, MemoryBudget
from nightwire.gateway.net.server import Endpoint
from nightwire.gateway.net.tls import ServerTLS
from nightwire.gateway.signing.requirements import SignatureRequirement
from nightwire.gateway.signing.signing_key import PASSWORD_VARIABLE, SigningKey, open_signing_key
from nightwire.gateway.signing.trust import Trust, TrustFiles
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.times import load_time_scales
from nightwire.gateway.voevent.validation import compile_schemas
from nightwire.schemas.registry import AlertDecoder, SchemaRegistry
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)


class Components:
    """What a gateway is made of.  Made in the event loop that it serves.

    Args:
        settings: What the gateway was told.
        metrics: The process's metrics.
        begin: Where it begins.
        board: What its status page shows.
    """

    def __init__(
        self, settings: Settings, metrics: GatewayMetrics, begin: StartOffsets, board: StatusModel
    ) -> None:
        self._settings, self._metrics = settings, metrics
        self._loop = asyncio.get_running_loop()
        self._decoder = _decoder(settings)
        self._index = open_event_index(settings)
        self._log = LoopProducer(producer(settings.bootstrap, linger_ms=1), self._loop)
        self._dead_letters: Writer | None = None
        self.book = AccountWriter(lambda: Writer(producer(settings.bootstrap), flush_timeout=30))
        instance = f"{settings.ivorn}@{socket.gethostname()}"
        self.admission = Deduplicator(self._index, self._log, instance)
        started = now_ms()
        self._hubs = self._make_hubs(begin)
        self._positions = self._make_positions(begin)
        handled = [topic for topic in feed_topics(settings.feeds) if not topic.startswith("alerts.")]
        self.handlers = HandlerService(
            settings.handlers, self._hubs.of(handled), begin, settings.state, metrics
        )
        shared = settings, self.admission, self.book
        trust = _trust(settings)
        of_brokers = SignatureRequirement("broker", trust.get("brokers"), metrics)
        of_authors = SignatureRequirement("author", trust.get("authors"), metrics)
        signing = _signing_key(settings)
        self.upstreams = UpstreamService(
            *shared, RejectionCounter("vtp-brokers", started), metrics, of_brokers, board, signing
        )
        self.gcn = self._gcn(begin)
        doors = settings.doors
        self.intake = MemoryBudget(doors.author_memory)
        authors = AuthorService(
            *shared, RejectionCounter("vtp-authors", started), metrics, of_authors, self.intake, board
        )
        subscribers = SubscriberService(settings, self.book, metrics, board, trust.get("subscribers"))
        tls = None if doors.tls.certificate is None else ServerTLS(doors.tls)
        at_authors = ConnectionLimiter(doors.authors, doors.limits)
        self.authors = AuthorListener(
            Endpoint("author", settings.authors, at_authors, metrics, board, tls=tls), authors.line
        )
        feeds = live_feeds(settings, self._hubs, metrics, self._positions)
        self.subscribers = FeedListeners(settings, subscribers, feeds, metrics, board, tls)

    def warm_up(self) -> None:
        """Do once what would make the first event slow: schemas, leap seconds, Kafka's metadata.  Blocks."""
        compile_schemas()
        load_time_scales()
        self._log.warm_up(VOEVENTS)
        if self._positions is not None:
            self._positions.load()

    def renderer(self, index: EventIndex, names: EventIndex) -> EventDecoder:
        """Return a renderer for the thread that opened the indexes."""

        def is_first(digest: bytes, partition: int, offset: int) -> bool:
            return index.first(digest) in (None, (partition, offset))

        shapes = {topic: feed.template for feed in self._settings.feeds for topic in feed.topics}
        cited = CitedEvents(names, lambda: consumer(self._settings.bootstrap))
        return EventDecoder(is_first, self._decoder, cited, shapes)

    def publish(self, events: Sequence[Event], hashes: Sequence[bytes]) -> None:
        """Hand on what the follower read; returns when it is taken.  Called from the follower's thread."""
        asyncio.run_coroutine_threadsafe(self._publish(events, list(hashes)), self._loop).result()

    def bury(self, message: Message, reason: str) -> None:
        """Move a record that cannot be read to the dead letters.  Called from the follower's thread."""
        topic = str(message.topic())
        source = f"{topic}[{message.partition()}]@{message.offset()}"
        log.warning("%s cannot be read and is no event: %s", source, reason)
        self._dead_letters = self._dead_letters or Writer(producer(self._settings.bootstrap))
        send_message_to_dead_letters(self._dead_letters, message, stage="gateway", reason=reason)
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

    def _gcn(self, begin: StartOffsets) -> GcnMirror | None:
        if (gcn := self._settings.gcn) is None:
            return None

        def writer() -> Writer:
            return Writer(producer(self._settings.bootstrap), flush_timeout=30)

        return GcnMirror(gcn, begin.written, self.admission, self.book, self._metrics, writer)

    def _make_hubs(self, begin: StartOffsets) -> Hubs:
        settings = self._settings
        backlog = ReplayReader(
            lambda: consumer(settings.bootstrap, queued_max_messages_kbytes=8 << 10),
            lambda: self.renderer(open_event_index(settings), open_name_index(settings)),
        )

        def make_ring(live: Positions) -> RingBuffer:
            return RingBuffer(live, max_events=settings.ring_events, max_bytes=settings.ring_bytes)

        return Hubs(begin.live, make_ring, ReplayService(backlog, self._metrics), self._metrics)

    def _make_positions(self, begin: StartOffsets) -> PositionStore | None:
        """Return where subscribers are remembered; None where no feed remembers any."""
        kafka = self._settings.bootstrap
        if not any(feed.replay for feed in self._settings.feeds):
            return None
        clients = KafkaClients(
            kafka, lambda: consumer(kafka), lambda: Writer(producer(kafka), flush_timeout=30)
        )
        return PositionStore(clients, begin.log)


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


LAST_WORDS = 0.5
"""Time that connections get to carry what is on its way, at the end. [s]"""
PATIENCE = 25.0
"""Longest wait at the end for Kafka to acknowledge what authors sent. [s]"""
HANDLER_PATIENCE = 10.0
"""Longest wait at the end for handlers; what does not end until then is begun again after the restart. [s]"""


class GatewayFailedError(Exception):
    """The gateway cannot go on; start it again."""


class Gateway:
    """A gateway: `run` it in an event loop of its own.

    Args:
        settings: What it was told.
        registry: Where its metrics go.
    """

    def __init__(self, settings: Settings, registry: CollectorRegistry) -> None:
        self._settings = settings
        self._metrics = GatewayMetrics(registry)
        self._failure: BaseException | None = None
        self._stop_following = threading.Event()
        self._follower: Follower | None = None
        self.serving = False
        self.board = StatusModel(settings.ivorn, time.time)
        self.addresses: Sequence[Address] = ()

    def healthy(self) -> bool:
        """Say whether it does its work."""
        return self.serving and self._failure is None

    async def run(self, stop: Stop) -> None:
        """Serve until *stop*.

        Raises:
            GatewayFailedError: It cannot go on.
            PluginError: A handler cannot be used.
            StateError: Another gateway uses the same state folder, or a newer one wrote it.
            OSError: An address to listen on is taken.
        """
        claim = claim_state(self._settings.state)
        try:
            begin = await self._await_kafka(stop)
            if begin is not None:
                await self._serve(begin, stop)
        finally:
            claim.close()

    async def _await_kafka(self, stop: Stop) -> StartOffsets | None:
        while not stop.is_set():
            try:
                return await asyncio.to_thread(find_start_offsets, self._settings)
            except KafkaException as error:
                log.warning("waiting for Kafka at %s: %s", self._settings.bootstrap, error.args[0])
                await asyncio.sleep(1.0)
        return None

    async def _serve(self, begin: StartOffsets, stop: Stop) -> None:
        parts = Components(self._settings, self._metrics, begin, self.board)
        thread = threading.Thread(target=self._follow, args=(begin, parts), name="follower", daemon=True)
        thread.start()
        upstream: list[asyncio.Task[None]] = []
        try:
            await self._catch_up(stop)
            await asyncio.to_thread(parts.warm_up)
            _spare_collector()
            await parts.handlers.start()
            self.addresses = (await parts.authors.start(), *await parts.subscribers.start())
            self.board.listens("authors", str(self.addresses[0]))
            for feed, address in zip(self._settings.feeds, self.addresses[1:], strict=True):
                self.board.listens(f"subscribers of {feed.name}", str(address))
            upstream += [asyncio.ensure_future(parts.upstreams.follow(one)) for one in self._settings.remotes]
            if (interval := self._settings.test_interval) is not None:
                sending = send_test_events(parts.admission, self._settings.ivorn, interval)
                upstream.append(asyncio.ensure_future(sending))
            if parts.gcn is not None:
                upstream.append(asyncio.ensure_future(parts.gcn.follow()))
            self.serving = True
            await self._until(stop, parts)
        finally:
            self.serving = False
            for task in upstream:
                task.cancel()
            await self._wind_up(parts, thread)
        if self._failure is not None:
            raise GatewayFailedError("the log cannot be followed") from self._failure

    async def _catch_up(self, stop: Stop) -> None:
        said = 0.0
        while not stop.is_set() and self._failure is None:
            left = 1 if self._follower is None else self._follower.behind
            if left == 0:
                return
            if time.monotonic() - said > 2.0 and self._follower is not None:
                said = time.monotonic()
                log.info("reading voevents from where the index ended: %d records left", left)
            await asyncio.sleep(0.02)

    async def _until(self, stop: Stop, parts: Components) -> None:
        while not stop.is_set() and self._failure is None:
            self._metrics.pending.set(parts.admission.pending)
            self._metrics.intake.set(parts.intake.held)
            self.board.look()
            for name, since in self.board.silent_since().items():
                self._metrics.feed_last.labels(name).set(since)
            await asyncio.sleep(0.1)

    async def _wind_up(self, parts: Components, thread: threading.Thread) -> None:
        log.info("stopping: finishing what authors sent")
        parts.authors.refuse_new()
        parts.subscribers.refuse_new()
        await asyncio.wait([asyncio.ensure_future(parts.admission.settled())], timeout=PATIENCE)
        await parts.authors.finish(LAST_WORDS)
        await parts.subscribers.finish(LAST_WORDS)
        await parts.handlers.finish(HANDLER_PATIENCE)
        self._stop_following.set()
        await asyncio.to_thread(thread.join)
        await asyncio.to_thread(parts.close)

    def _follow(self, begin: StartOffsets, parts: Components) -> None:
        try:
            index, names = open_event_index(self._settings), open_name_index(self._settings)
            reader = consumer(self._settings.bootstrap)
            self._follower = Follower(
                reader,
                start=begin.start,
                live=begin.live,
                index=index,
                names=names,
                ledger=EventAccounts(begin.accounted),
                accounts=parts.book if self._settings.accounts else None,
                renderer=parts.renderer(index, names),
                publish=parts.publish,
                bury=parts.bury,
            )
            self._follower.run(self._stop_following)
            reader.close()
            index.close()
            names.close()
        except Exception as error:
            log.exception("following the log failed")
            self._failure = error


def _spare_collector() -> None:
    """Let the garbage collector pass over what is there for good, and look less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
