"""One gateway process: its settings, its components, and how it starts, serves and stops."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from confluent_kafka import KafkaException, Message
from prometheus_client import CollectorRegistry

from nightwire.core.accounting import Account, send_message_to_dead_letters
from nightwire.core.channels import ChannelCopies, OneSchema
from nightwire.core.kafka import Writer, cluster_id, consumer, enter, error_text, producer
from nightwire.core.runtime import Stop, now_ms, tune_garbage_collector
from nightwire.gateway.eventlog.accounts import AccountWriter, RejectionCounter
from nightwire.gateway.eventlog.decoder import CitedEvents, EventDecoder
from nightwire.gateway.eventlog.deduplicator import Deduplicator
from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.gateway.eventlog.follower import Follower
from nightwire.gateway.eventlog.loop_producer import LoopProducer
from nightwire.gateway.eventlog.replay import ReplayReader, ReplayService
from nightwire.gateway.eventlog.ring_buffer import RingBuffer
from nightwire.gateway.eventlog.settings import EventLogSettings
from nightwire.gateway.eventlog.start_offsets import (
    StartOffsets,
    find_start_offsets,
    open_event_index,
    open_indexes,
)
from nightwire.gateway.eventlog.state_folder import claim_state
from nightwire.gateway.fanout.feed import SubscriberSettings, feed_topics
from nightwire.gateway.fanout.hub import Hubs
from nightwire.gateway.fanout.listeners import FeedListeners, live_feeds
from nightwire.gateway.fanout.positions import KafkaClients, PositionStore
from nightwire.gateway.fanout.subscribers import SubscriberService
from nightwire.gateway.handlers.service import HandlerService
from nightwire.gateway.handlers.settings import HandlerSettings
from nightwire.gateway.ingest.author_acks import AuthorService
from nightwire.gateway.ingest.author_listener import AuthorListener
from nightwire.gateway.ingest.gcn_mirror import GcnMirror
from nightwire.gateway.ingest.intake import EventIntake
from nightwire.gateway.ingest.settings import AuthorSettings, GcnSettings, UpstreamSettings
from nightwire.gateway.ingest.test_events import send_test_events
from nightwire.gateway.ingest.upstream import UpstreamService
from nightwire.gateway.net.access import Access, Door
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import ConnectionLimiter
from nightwire.gateway.net.memory import MemoryBudget
from nightwire.gateway.net.server import Endpoint
from nightwire.gateway.net.tls import TLSSettings, server_tls
from nightwire.gateway.signing.requirements import SignatureRequirement, SignatureSettings
from nightwire.gateway.signing.signing_key import PASSWORD_VARIABLE, SigningKey, open_signing_key
from nightwire.gateway.signing.trust import Trust, TrustFiles
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.times import load_time_scales
from nightwire.gateway.voevent.validation import compile_schemas
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.registry import AlertDecoder, SchemaRegistry
from nightwire.schemas.serving import ServerTLS
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)

LAST_WORDS = 0.5
"""Time at the end for connections to carry the last messages. [s]"""
SETTLE_TIMEOUT = 25.0
"""Longest wait at the end for Kafka to acknowledge the events of authors. [s]"""
HANDLER_TIMEOUT = 10.0
"""Longest wait at the end for handlers; those that go on are begun again after the restart. [s]"""
FLUSH_TIMEOUT = 30
"""Longest wait for Kafka to acknowledge what a writer wrote. [s]"""


@dataclass(frozen=True)
class Settings:
    """The options of ``nightwire gateway serve``.

    Attributes:
        log: Kafka, and this gateway's state.
        authors: Connections from authors.
        subscribers: Connections from subscribers, and the feeds.
        ivoid: Of this gateway as a broker.
        registry: Address of the schema registry, which feeds of alerts need.
        upstreams: Connections to remote brokers.
        gcn: What is read of GCN; None: nothing.
        handlers: What is done with each event.
        signatures: Of whom signatures are required.
        tls: Certificates.
        test_interval: Time between test events [s]; None: there are none.
    """

    log: EventLogSettings
    authors: AuthorSettings
    subscribers: SubscriberSettings
    ivoid: str = "ivo://nightwire/gateway"
    registry: str | None = None
    upstreams: UpstreamSettings = field(default_factory=UpstreamSettings)
    gcn: GcnSettings | None = None
    handlers: HandlerSettings = field(default_factory=HandlerSettings)
    signatures: SignatureSettings = field(default_factory=SignatureSettings)
    tls: TLSSettings = field(default_factory=TLSSettings)
    test_interval: float | None = None


class Components:
    """The components of a gateway.  Made in the event loop that it serves.

    Args:
        settings: The gateway's.
        metrics: The process's metrics.
        begin: Where it begins.
        status: What its status page shows.
    """

    def __init__(
        self, settings: Settings, metrics: GatewayMetrics, begin: StartOffsets, status: StatusModel
    ) -> None:
        self._settings, self._metrics, self._status = settings, metrics, status
        self._loop = asyncio.get_running_loop()
        self._alert_decoder = _alert_decoder(settings)
        self._channels = ChannelCopies(settings.log.bootstrap, VOEVENTS, VOEVENTS, OneSchema(VOEVENT.codec))
        self._log = LoopProducer(producer(settings.log.bootstrap, linger_ms=1), self._loop, self._channels)
        self._dead_letters: Writer | None = None
        self._started = now_ms()
        self._trust = _trust(settings)
        self.memory = MemoryBudget(settings.authors.memory)
        self.accounts = AccountWriter(self._make_writer)
        self.deduplicator = Deduplicator(
            open_event_index(settings.log), self._log, f"{settings.ivoid}@{socket.gethostname()}"
        )
        self._hubs = self._make_hubs(begin)
        self._positions = self._make_positions(begin)
        self.handlers = self._make_handlers(begin)
        self.upstreams = UpstreamService(
            settings.ivoid, settings.upstreams, self._intake("broker"), status, _signing_key(settings)
        )
        self.gcn = self._make_gcn(begin)
        tls = None if settings.tls.certificate is None else server_tls(settings.tls)
        self.authors = self._make_authors(tls)
        self.feeds = self._make_feeds(tls)

    def warm_up(self) -> None:
        """Load schemas, leap seconds, Kafka's metadata: so the first event is fast.  Blocks."""
        compile_schemas()
        load_time_scales()
        self._log.warm_up(VOEVENTS)
        self._channels.start()
        if self._positions is not None:
            self._positions.load()

    def jobs(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield what runs as long as the gateway serves."""
        settings = self._settings
        yield from (self.upstreams.follow(remote) for remote in settings.upstreams.remotes)
        if settings.test_interval is not None:
            yield send_test_events(self.deduplicator, settings.ivoid, settings.test_interval)
        if self.gcn is not None:
            yield self.gcn.follow()
        yield self.handlers.run()

    def event_decoder(self, index: EventIndex, names: EventIndex, alerts: EventIndex) -> EventDecoder:
        """Return a decoder for the thread that opened the indexes."""

        def is_first(digest: bytes, partition: int, offset: int) -> bool:
            return index.first(digest) in (None, (partition, offset))

        feeds = self._settings.subscribers.feeds
        templates = {topic: feed.template for feed in feeds for topic in feed.topics}
        cited = CitedEvents(names, alerts, lambda: consumer(self._settings.log.bootstrap))
        conditions = {
            topic: {feed.where for feed in feeds if topic in feed.topics} for topic in feed_topics(feeds)
        }
        return EventDecoder(is_first, self._alert_decoder, cited, templates, conditions)

    def publish(self, events: Sequence[Event], hashes: Sequence[bytes]) -> None:
        """Hand on new events; returns when they are taken.  Called from the follower's thread."""
        asyncio.run_coroutine_threadsafe(self._publish(events, list(hashes)), self._loop).result()

    def send_to_dead_letters(self, message: Message, reason: str) -> None:
        """Send an unreadable record to the dead letters.  Called from the follower's thread."""
        topic = str(message.topic())
        source = f"{topic}[{message.partition()}]@{message.offset()}"
        log.warning("%s cannot be read and is no event: %s", source, reason)
        self._dead_letters = self._dead_letters or Writer(producer(self._settings.log.bootstrap))
        send_message_to_dead_letters(self._dead_letters, message, stage="gateway", reason=reason)
        self._dead_letters.flush()
        self._metrics.dead_lettered.labels(topic).inc()

    def account(self, account: Account) -> None:
        """Write *account*, unless another gateway keeps the accounts."""
        if self._settings.log.accounts:
            self.accounts.post(account)

    def close(self) -> None:
        """Flush, and close the clients of Kafka.  Blocks."""
        self._hubs.close()
        if self._positions is not None:
            self._positions.close(30.0)
        if missing := self._log.close(10.0):
            log.error("%d events are not acknowledged by Kafka; their authors were not either", missing)
        self._channels.close()
        if not self.accounts.close(30.0):
            log.error("accounts could not be written to Kafka")
        log.info("stopped")

    async def _publish(self, events: Sequence[Event], hashes: list[bytes]) -> None:
        self.deduplicator.indexed(hashes)
        self._hubs.publish(events)
        self.feeds.count(events)

    def _make_writer(self) -> Writer:
        return Writer(producer(self._settings.log.bootstrap), flush_timeout=FLUSH_TIMEOUT)

    def _intake(self, source: str) -> EventIntake:
        """Return where events of authors or of brokers go."""
        requirement = SignatureRequirement(source, self._trust.get(f"{source}s"), self._metrics)
        rejections = RejectionCounter(f"vtp-{source}s", self._started)
        return EventIntake(
            source, self.deduplicator, requirement, self.accounts, rejections, self._metrics, self.memory
        )

    def _make_authors(self, tls: ServerTLS | None) -> list[AuthorListener]:
        """Return the listeners of authors, the usual one first."""
        settings = self._settings.authors
        service = AuthorService(self._settings.ivoid, settings, self._intake("author"), self._status)

        def listener(address: Address, access: Access) -> AuthorListener:
            limiter = ConnectionLimiter(access, settings.limits)
            endpoint = Endpoint("author", address, limiter, self._metrics, self._status, tls=tls)
            return AuthorListener(endpoint, service.protocol)

        door = [] if settings.tls_door is None else [settings.tls_door]
        return [listener(one.address, one.access) for one in (Door(settings.address, settings.access), *door)]

    def _make_feeds(self, tls: ServerTLS | None) -> FeedListeners:
        ivoid, settings, metrics = self._settings.ivoid, self._settings.subscribers, self._metrics
        trust = self._trust.get("subscribers")
        service = SubscriberService(ivoid, settings, self.accounts, metrics, self._status, self.memory, trust)
        feeds = live_feeds(ivoid, settings, self._hubs, metrics, self._positions)
        return FeedListeners(settings, service, feeds, metrics, self._status, tls)

    def _make_handlers(self, begin: StartOffsets) -> HandlerService:
        topics = [name for name in self._settings.log.topics if not name.startswith("alerts.")]
        settings, hub = self._settings, self._hubs.of(topics)
        return HandlerService(settings.handlers, hub, begin, settings.log.state, self._metrics)

    def _make_gcn(self, begin: StartOffsets) -> GcnMirror | None:
        if (gcn := self._settings.gcn) is None:
            return None
        return GcnMirror(
            gcn, begin.written, self.deduplicator, self.accounts, self._metrics, self._make_writer
        )

    def _make_hubs(self, begin: StartOffsets) -> Hubs:
        settings = self._settings.log
        reader = ReplayReader(
            lambda: consumer(
                settings.bootstrap, queued_max_messages_kbytes=8 << 10, enable_partition_eof=True
            ),
            lambda: self.event_decoder(*open_indexes(settings)),
        )

        def make_ring(live: Positions) -> RingBuffer:
            return RingBuffer(live, max_events=settings.ring_events, max_bytes=settings.ring_bytes)

        return Hubs(begin.live, make_ring, ReplayService(reader, self._metrics), self._metrics)

    def _make_positions(self, begin: StartOffsets) -> PositionStore | None:
        """Return the positions of subscribers; None where no feed keeps any."""
        bootstrap = self._settings.log.bootstrap
        if not any(feed.replay for feed in self._settings.subscribers.feeds):
            return None
        clients = KafkaClients(bootstrap, lambda: consumer(bootstrap), self._make_writer)
        return PositionStore(clients, begin.log)


def _alert_decoder(settings: Settings) -> AlertDecoder | None:
    if settings.registry is None or not any(feed.has_alerts for feed in settings.subscribers.feeds):
        return None
    known = partial(cluster_id, settings.log.bootstrap)
    return AlertDecoder(SchemaRegistry(settings.registry, cluster_id=known))


def _trust(settings: Settings) -> dict[str, Trust]:
    """Return what verifies the signatures of each kind of peer of whom they are required."""
    signatures = settings.signatures
    if not signatures.required or signatures.keyring is None:
        return {}
    files = TrustFiles(signatures.keyring, signatures.policy)
    trust = Trust(files, timedelta(days=settings.log.remembered_days))
    return dict.fromkeys(signatures.required, trust)


def _signing_key(settings: Settings) -> SigningKey | None:
    path = settings.signatures.key
    return None if path is None else open_signing_key(path, os.environ.get(PASSWORD_VARIABLE))


class GatewayFailedError(Exception):
    """The gateway cannot go on; start it again."""


class Gateway:
    """A gateway: `run` it in an event loop of its own.

    Args:
        settings: Its options.
        registry: Where its metrics go.
    """

    def __init__(self, settings: Settings, registry: CollectorRegistry) -> None:
        self._settings = settings
        self._metrics = GatewayMetrics(registry)
        self._failure: BaseException | None = None
        self._stop_following = threading.Event()
        self._follower: Follower | None = None
        self.serving = False
        self.status = StatusModel(settings.ivoid, time.time)
        self.addresses: Sequence[Address] = ()

    def healthy(self) -> bool:
        """Say whether it serves."""
        return self.serving and self._failure is None

    async def run(self, stop: Stop) -> None:
        """Serve until *stop*.

        Raises:
            GatewayFailedError: It cannot go on.
            PluginError: A handler cannot be used.
            StateError: Another gateway uses the same state folder, or a newer one wrote it.
            OSError: An address to listen on is taken.
        """
        claim = claim_state(self._settings.log.state)
        try:
            begin = await self._await_kafka(stop)
            if begin is not None:
                await self._serve(begin, stop)
        finally:
            claim.close()

    async def _await_kafka(self, stop: Stop) -> StartOffsets | None:
        settings = self._settings
        while not stop.is_set():
            try:
                await asyncio.to_thread(enter, settings.log.bootstrap)
                return await asyncio.to_thread(
                    find_start_offsets, settings.log, with_accounts=settings.gcn is not None
                )
            except KafkaException as error:
                log.warning("waiting for Kafka: %s", error_text(error))
                await asyncio.sleep(1.0)
        return None

    async def _serve(self, begin: StartOffsets, stop: Stop) -> None:
        parts = Components(self._settings, self._metrics, begin, self.status)
        thread = threading.Thread(target=self._follow, args=(begin, parts), name="follower", daemon=True)
        thread.start()
        try:
            await self._catch_up(stop)
            await asyncio.to_thread(parts.warm_up)
            tune_garbage_collector()
            await parts.handlers.start()
            await self._listen(parts)
            await self._work(parts, stop)
        finally:
            self.serving = False
            await self._wind_up(parts, thread)
        if self._failure is not None:
            raise GatewayFailedError("the log cannot be followed") from self._failure

    async def _listen(self, parts: Components) -> None:
        authors = [await one.start() for one in parts.authors]
        self.addresses = (*authors, *await parts.feeds.start())
        names = ["authors", "authors, by TLS"][: len(authors)]
        settings = self._settings.subscribers
        names += [f"subscribers of {feed.name}" for feed in settings.feeds]
        names += [] if settings.tls_door is None else [f"subscribers of {settings.feeds[0].name}, by TLS"]
        for name, address in zip(names, self.addresses, strict=True):
            self.status.listens(name, str(address))

    async def _work(self, parts: Components, stop: Stop) -> None:
        """Run all jobs until *stop*; the gateway fails with the first that fails."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(job) for job in parts.jobs()]
                self.serving = True
                await self._watch(stop, parts)
                for task in tasks:
                    task.cancel()
        except ExceptionGroup as failed:
            log.exception("a job of the gateway failed")
            raise GatewayFailedError(f"a job failed: {failed.exceptions[0]}") from failed

    async def _catch_up(self, stop: Stop) -> None:
        logged_at = 0.0
        while not stop.is_set() and self._failure is None:
            behind = 1 if self._follower is None else self._follower.behind
            if behind == 0:
                return
            if time.monotonic() - logged_at > 2.0 and self._follower is not None:
                logged_at = time.monotonic()
                log.info("reading voevents from where the index ended: %d records left", behind)
            await asyncio.sleep(0.02)

    async def _watch(self, stop: Stop, parts: Components) -> None:
        """Keep the metrics up to date until *stop*, or until the log cannot be followed."""
        while not stop.is_set() and self._failure is None:
            self._metrics.pending.set(parts.deduplicator.pending)
            self._metrics.intake.set(parts.memory.held)
            self.status.look()
            for name, since in self.status.silent_since().items():
                self._metrics.feed_last.labels(name).set(since)
            await asyncio.sleep(0.1)

    async def _wind_up(self, parts: Components, thread: threading.Thread) -> None:
        log.info("stopping: finishing the events of authors")
        for one in parts.authors:
            one.refuse_new()
        parts.feeds.refuse_new()
        settled = asyncio.ensure_future(parts.deduplicator.settled())
        await asyncio.wait([settled], timeout=SETTLE_TIMEOUT)
        await asyncio.gather(*(one.finish(LAST_WORDS) for one in parts.authors))
        await parts.feeds.finish(LAST_WORDS)
        await parts.handlers.finish(HANDLER_TIMEOUT)
        self._stop_following.set()
        await asyncio.to_thread(thread.join)
        await asyncio.to_thread(parts.close)

    def _follow(self, begin: StartOffsets, parts: Components) -> None:
        try:
            indexes = index, names, _ = open_indexes(self._settings.log)
            reader = consumer(self._settings.log.bootstrap, enable_partition_eof=True)
            decoder = parts.event_decoder(*indexes)
            self._follower = Follower(reader, begin, index=index, names=names, decoder=decoder, sink=parts)
            self._follower.run(self._stop_following)
            reader.close()
            for one in indexes:
                one.close()
        except Exception as error:
            log.exception("following the log failed")
            self._failure = error
