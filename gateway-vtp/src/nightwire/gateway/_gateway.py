"""One gateway process: started in order, run, and stopped in order."""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from nightwire.core.kafka import consumer
from nightwire.core.process import Stop
from nightwire.gateway._beginning import Beginning, find_beginning, known_events, known_names
from nightwire.gateway._board import Board
from nightwire.gateway._follower import Follower, Ledger
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._parts import Parts
from nightwire.gateway._settings import Address, Settings
from nightwire.gateway._state_folder import claim_state
from nightwire.gateway._test_events import send_test_events

log = logging.getLogger(__name__)

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
        self.board = Board(settings.ivorn, time.time)
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

    async def _await_kafka(self, stop: Stop) -> Beginning | None:
        while not stop.is_set():
            try:
                return await asyncio.to_thread(find_beginning, self._settings)
            except KafkaException as error:
                log.warning("waiting for Kafka at %s: %s", self._settings.bootstrap, error.args[0])
                await asyncio.sleep(1.0)
        return None

    async def _serve(self, begin: Beginning, stop: Stop) -> None:
        parts = Parts(self._settings, self._metrics, begin, self.board)
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

    async def _until(self, stop: Stop, parts: Parts) -> None:
        while not stop.is_set() and self._failure is None:
            self._metrics.pending.set(parts.admission.pending)
            self._metrics.intake.set(parts.intake.held)
            self.board.look()
            for name, since in self.board.silent_since().items():
                self._metrics.feed_last.labels(name).set(since)
            await asyncio.sleep(0.1)

    async def _wind_up(self, parts: Parts, thread: threading.Thread) -> None:
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

    def _follow(self, begin: Beginning, parts: Parts) -> None:
        try:
            index, names = known_events(self._settings), known_names(self._settings)
            reader = consumer(self._settings.bootstrap)
            self._follower = Follower(
                reader,
                start=begin.start,
                live=begin.live,
                index=index,
                names=names,
                ledger=Ledger(begin.accounted),
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
