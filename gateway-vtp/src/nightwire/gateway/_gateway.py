"""One gateway process: its parts put together, started in order, and stopped in order."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException, Message
from prometheus_client import CollectorRegistry

from nightwire.core.clock import now_ms
from nightwire.core.dead_letters import bury_message
from nightwire.core.kafka import Writer, consumer, producer
from nightwire.core.process import Stop
from nightwire.gateway._access import AccessList
from nightwire.gateway._admission import Admission
from nightwire.gateway._authors import Authors
from nightwire.gateway._backlog import Backlog
from nightwire.gateway._beginning import Beginning, find_beginning, index_path, lock_state
from nightwire.gateway._book import AccountBook, Tally
from nightwire.gateway._follower import Follower, Ledger
from nightwire.gateway._hub import Hub
from nightwire.gateway._index import EventIndex
from nightwire.gateway._kafka import LoopProducer
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._render import Renderer
from nightwire.gateway._ring import Event, Ring
from nightwire.gateway._server import Listener
from nightwire.gateway._settings import Address, Settings
from nightwire.gateway._subscribers import Subscribers
from nightwire.gateway._times import load_time_scales
from nightwire.gateway._upstream import Upstreams
from nightwire.gateway._validation import compile_schemas
from nightwire.schemas.registry import AlertDecoder, SchemaRegistry
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)

LAST_WORDS = 0.5
"""Time that connections get to carry what is on its way, at the end. [s]"""
PATIENCE = 25.0
"""Longest wait at the end for Kafka to acknowledge what authors sent. [s]"""


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
        self.addresses: tuple[Address, Address] | None = None

    def healthy(self) -> bool:
        """Say whether it does its work."""
        return self.serving and self._failure is None

    async def run(self, stop: Stop) -> None:
        """Serve until *stop*.

        Raises:
            GatewayFailedError: It cannot go on.
            StateInUseError: Another gateway uses the same state folder.
            OSError: An address to listen on is taken.
        """
        claim = lock_state(self._settings.state)
        try:
            begin = await self._await_kafka(stop)
            if begin is not None:
                await self._serve(begin, stop)
        finally:
            claim.close()

    async def _await_kafka(self, stop: Stop) -> Beginning | None:
        while not stop.is_set():
            try:
                return await asyncio.to_thread(find_beginning, self._settings)
            except KafkaException as error:
                log.warning("waiting for Kafka at %s: %s", self._settings.bootstrap, error.args[0])
                await asyncio.sleep(1.0)
        return None

    async def _serve(self, begin: Beginning, stop: Stop) -> None:
        parts = Parts(self._settings, self._metrics, begin)
        thread = threading.Thread(target=self._follow, args=(begin, parts), name="follower", daemon=True)
        thread.start()
        upstream: list[asyncio.Task[None]] = []
        try:
            await self._catch_up(stop)
            await asyncio.to_thread(parts.warm_up)
            self.addresses = (await parts.authors.start(), await parts.subscribers.start())
            upstream += [asyncio.ensure_future(parts.upstreams.follow(one)) for one in self._settings.remotes]
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

    async def _until(self, stop: Stop, parts: "Parts") -> None:
        while not stop.is_set() and self._failure is None:
            self._metrics.pending.set(parts.admission.pending)
            await asyncio.sleep(0.1)

    async def _wind_up(self, parts: "Parts", thread: threading.Thread) -> None:
        log.info("stopping: finishing what authors sent")
        parts.authors.refuse_new()
        parts.subscribers.refuse_new()
        await asyncio.wait([asyncio.ensure_future(parts.admission.settled())], timeout=PATIENCE)
        await parts.authors.finish(LAST_WORDS)
        await parts.subscribers.finish(LAST_WORDS)
        self._stop_following.set()
        await asyncio.to_thread(thread.join)
        await asyncio.to_thread(parts.close)

    def _follow(self, begin: Beginning, parts: "Parts") -> None:
        try:
            index = EventIndex(index_path(self._settings))
            reader = consumer(self._settings.bootstrap)
            self._follower = Follower(
                reader,
                start=begin.start,
                live=begin.live,
                index=index,
                ledger=Ledger(begin.accounted),
                accounts=parts.book if self._settings.accounts else None,
                renderer=parts.renderer(index),
                publish=parts.publish,
                bury=parts.bury,
            )
            self._follower.run(self._stop_following)
            reader.close()
            index.close()
        except Exception as error:
            log.exception("following the log failed")
            self._failure = error


class Parts:
    """What a gateway is made of.  Made in the event loop that it serves.

    Args:
        settings: What the gateway was told.
        metrics: The process's metrics.
        begin: Where it begins.
    """

    def __init__(self, settings: Settings, metrics: GatewayMetrics, begin: Beginning) -> None:
        self._settings, self._metrics = settings, metrics
        self._loop = asyncio.get_running_loop()
        self._decoder = _decoder(settings)
        self._index = EventIndex(index_path(settings))
        self._log = LoopProducer(producer(settings.bootstrap, linger_ms=1), self._loop)
        self._dead_letters: Writer | None = None
        self.book = AccountBook(lambda: Writer(producer(settings.bootstrap), flush_timeout=30))
        instance = f"{settings.ivorn}@{socket.gethostname()}"
        self.admission = Admission(self._index, self._log, instance)
        started = now_ms()
        self._hub = self._make_hub(begin)
        shared = settings, self.admission, self.book
        self.upstreams = Upstreams(*shared, Tally("vtp-brokers", started), metrics)
        authors = Authors(*shared, Tally("vtp-authors", started), metrics)
        subscribers = Subscribers(settings, self._hub, self.book, metrics)
        self.authors = Listener(
            "author",
            settings.authors,
            AccessList(settings.author_allow),
            authors.converse,
            max_connections=settings.max_connections,
            metrics=metrics,
        )
        self.subscribers = Listener(
            "subscriber",
            settings.subscribers,
            AccessList(settings.subscriber_allow),
            subscribers.converse,
            max_connections=settings.max_connections,
            metrics=metrics,
        )

    def warm_up(self) -> None:
        """Do once what would make the first event slow: schemas, leap seconds, Kafka's metadata.  Blocks."""
        compile_schemas()
        load_time_scales()
        self._log.warm_up(VOEVENTS)

    def renderer(self, index: EventIndex) -> Renderer:
        """Return a renderer for the thread that opened *index*."""

        def is_first(digest: bytes, partition: int, offset: int) -> bool:
            return index.first(digest) in (None, (partition, offset))

        return Renderer(is_first, self._decoder)

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
        self._hub.close()
        if missing := self._log.close(10.0):
            log.error("%d events are not acknowledged by Kafka; their authors were not either", missing)
        if not self.book.close(30.0):
            log.error("accounts could not be written to Kafka")
        log.info("stopped")

    async def _publish(self, events: Sequence[Event], hashes: list[bytes]) -> None:
        await self.admission.indexed(hashes)
        self._hub.publish(events)

    def _make_hub(self, begin: Beginning) -> Hub:
        settings = self._settings
        ring = Ring(begin.live, max_events=settings.ring_events, max_bytes=settings.ring_bytes)
        backlog = Backlog(
            lambda: consumer(settings.bootstrap, queued_max_messages_kbytes=8 << 10),
            lambda: self.renderer(EventIndex(index_path(settings))),
        )
        return Hub(ring, backlog, self._metrics)


def _decoder(settings: Settings) -> AlertDecoder | None:
    if not settings.feeds or settings.registry is None:
        return None
    return AlertDecoder(SchemaRegistry(settings.registry))
