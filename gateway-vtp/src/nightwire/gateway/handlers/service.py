"""Handlers at work: each gets every event once, at its own pace; Kafka holds the others."""

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException

from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.eventlog.start_offsets import StartOffsets
from nightwire.gateway.fanout.hub import Hub
from nightwire.gateway.handlers.commands import CommandRunner, Runner
from nightwire.gateway.handlers.plugin_process import PluginRunner
from nightwire.gateway.handlers.progress import (
    HandlerOutcome,
    HandlerProgress,
    HandlerResult,
    acts_on,
    start_positions,
)
from nightwire.gateway.handlers.settings import HandlerSettings, HandlerSpec
from nightwire.gateway.handlers.state import HandlerState
from nightwire.gateway.status.metrics import GatewayMetrics

log = logging.getLogger(__name__)

SAVE_INTERVAL = 0.5
"""Time between writes of the positions; events within it may be handled again after a crash. [s]"""
RETRY_DELAY = 5.0
"""Wait after Kafka failed. [s]"""


class HandlerLoop:
    """One handler at work.

    Args:
        spec: The handler.
        runner: Runs it.
        roles: It acts on events of these.
        hub: Where events come from.
        progress: Up to where it has acted.
        metrics: The process's metrics.
    """

    def __init__(
        self,
        spec: HandlerSpec,
        runner: Runner,
        *,
        roles: Sequence[str],
        hub: Hub,
        progress: HandlerProgress,
        metrics: GatewayMetrics,
    ) -> None:
        self.spec, self.runner, self.progress = spec, runner, progress
        self._roles, self._hub, self._metrics = roles, hub, metrics
        self._cursor = hub.resume(progress.positions)
        self._free = asyncio.Semaphore(runner.jobs)
        self._running: set[asyncio.Task[None]] = set()

    async def follow(self) -> None:
        """Act on every event, for ever."""
        while True:
            try:
                async for piece in self._hub.pieces(self._cursor):
                    for event in piece:
                        await self._take(event)
            except KafkaException as error:
                log.error("handler %s waits, Kafka failed: %s", self.spec.name, error)  # noqa: TRY400
                await asyncio.sleep(RETRY_DELAY)

    async def finish(self, timeout: float) -> None:
        """Let runs end within *timeout* [s]; end the others, to be done again after the restart."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self.runner.close()

    async def _take(self, event: Event) -> None:
        if not acts_on(event, self._roles):
            self.progress.skipped(event)
            return
        await self._free.acquire()
        self.progress.began(event)
        task = asyncio.create_task(self._act(event))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _act(self, event: Event) -> None:
        began = time.perf_counter()
        try:
            with self._metrics.handling.labels(self.spec.name).track_inprogress():
                result = await self.runner.run(event)
        finally:
            self._free.release()
        self.progress.ended(event)
        self._metrics.handler_seconds.labels(self.spec.name).observe(time.perf_counter() - began)
        self._report(event, result)

    def _report(self, event: Event, result: HandlerResult) -> None:
        self._metrics.handled.labels(self.spec.name, result.outcome.value).inc()
        if result.outcome is not HandlerOutcome.DONE:
            log.warning("handler %s, %s: %s", self.spec.name, event.ivorn, result.reason)


class HandlerService:
    """All handlers of a gateway.

    Args:
        settings: The handlers.
        hub: Where events come from.
        begin: Where this start begins.
        state: Folder of the gateway's state.
        metrics: The process's metrics.
    """

    def __init__(
        self,
        settings: HandlerSettings,
        hub: Hub,
        begin: StartOffsets,
        state: Path,
        metrics: GatewayMetrics,
    ) -> None:
        self._hub, self._metrics = hub, metrics
        self._state = HandlerState(state / "handlers.json", begin.log)
        stored = self._state.read() if settings.catch_up and settings.specs else {}
        self._loops = [
            HandlerLoop(
                spec,
                _runner(spec, settings),
                roles=settings.roles,
                hub=hub,
                progress=HandlerProgress(start_positions(stored.get(spec.name), begin.oldest, begin.live)),
                metrics=metrics,
            )
            for spec in settings.specs
        ]
        self._saved: dict[str, Positions] = {}

    async def start(self) -> None:
        """Get the handlers ready.

        Raises:
            PluginError: One of them cannot be used.
        """
        for one in self._loops:
            await one.runner.start()
            for outcome in HandlerOutcome:
                self._metrics.handled.labels(one.spec.name, outcome.value)
        await self._save()

    async def run(self) -> None:
        """Let the handlers act, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._loops:
                group.create_task(one.follow())
            if self._loops:
                group.create_task(self._save_now_and_then())

    async def finish(self, timeout: float) -> None:
        """Let runs end within *timeout* [s]; save the positions.  Call it after `run` ended."""
        await asyncio.gather(*(one.finish(timeout) for one in self._loops))
        await self._save()

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SAVE_INTERVAL)
            await self._save()

    async def _save(self) -> None:
        """Write the positions to disk, if they changed; on a full disk, later."""
        head = self._hub.live().positions
        for one in self._loops:
            self._metrics.handler_behind.labels(one.spec.name).set(one.progress.behind(head))
        positions = {one.spec.name: one.progress.positions for one in self._loops}
        if positions == self._saved:
            return
        try:
            await asyncio.to_thread(self._state.write, positions)
        except OSError as error:
            log.error("positions of handlers are not saved, trying again: %s", error)  # noqa: TRY400
        else:
            self._saved = positions


def _runner(spec: HandlerSpec, settings: HandlerSettings) -> Runner:
    if spec.command:
        return CommandRunner(spec, settings.jobs, settings.timeout)
    return PluginRunner(spec, settings.timeout)
