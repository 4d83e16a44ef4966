"""A supervised process: started, asked for its health, restarted when it ends, stopped cleanly."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nightwire.core.runtime import Backoff, process_started
from nightwire.core.runtime.process import TLS_SETTING, die_with_parent, kill
from nightwire.core.stack.services import Service

log = logging.getLogger("nightwire.stack")

STEADY = 30.0
"""A process that ran for longer has recovered: its next restart comes after the first pause. [s]"""
POLL = 0.1
"""Time between two checks of its health while it starts. [s]"""
HEALTH_INTERVAL = 2.0
"""Time between two checks of its health while it runs. [s]"""
MAX_UNHEALTHY = 90.0
"""Longest time of bad health before the process is killed and restarted. [s]"""
LOG_LIMIT = 16 << 20
"""Size at which a log is set aside as ``.1``. [byte]"""

Health = Callable[[], Awaitable[bool]]


class ManagedProcess:
    """A service and its present process.

    Args:
        service: What to run.
        logs: Folder of the logs.
        health: Tells whether the process does its work.
        changed: Called at each change of state.
        hold: Returns why the process is not to be started now; None where it may be.
    """

    def __init__(
        self,
        service: Service,
        logs: Path,
        health: Health,
        changed: Callable[[], None],
        hold: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.service, self._health, self._changed, self._hold = service, health, changed, hold
        self.state, self.restarts = "stopped", 0
        self._log = logs / f"{service.name}.log"
        self._process: asyncio.subprocess.Process | None = None
        self._leaving = False
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def describe(self) -> dict[str, Any]:
        """Return its line in the state file."""
        pid = self.pid
        started = process_started(pid) if pid else None
        return {
            "name": self.service.name,
            "pid": pid,
            "state": self.state,
            "restarts": self.restarts,
            "started": started,
            "log": str(self._log),
        }

    async def start(self) -> None:
        """Start the process, restart it from now on, and return once it is healthy.

        Raises:
            TimeoutError: It did not become healthy in its time.
        """
        self._keeper = asyncio.create_task(self._keep())
        async with asyncio.timeout(self.service.ready_timeout):
            while self.state != "healthy":
                await asyncio.sleep(POLL)

    async def stop(self) -> None:
        """Stop the process; kill it when that takes longer than its `stop_timeout`."""
        self._leaving = True
        process = self._process
        if process is not None and self.pid is not None:
            self._set_state("stopping")
            kill(process.pid, signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), self.service.stop_timeout)
            except TimeoutError:
                log.warning("%s did not leave in %g s: killed", self.service.name, self.service.stop_timeout)
                kill(process.pid)
        if self._keeper:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        self._set_state("stopped")

    async def _keep(self) -> None:
        backoff = Backoff()
        while True:
            await self._wait_while_held()
            began = asyncio.get_running_loop().time()
            try:
                await self._run_once()
            except OSError as error:  # no memory for a process, no room for its log
                log.error("%s could not be started: %s", self.service.name, error)  # noqa: TRY400
            if self._leaving:
                return
            if asyncio.get_running_loop().time() - began > STEADY:
                backoff.reset()
            pause = backoff.next()
            log.warning("%s ended; starting it again in %g s (log: %s)", self.service.name, pause, self._log)
            self._set_state("restarting")
            await asyncio.sleep(pause)
            self.restarts += 1

    async def _wait_while_held(self) -> None:
        while (why := self._hold()) is not None:
            if self.state != "waiting":
                log.error("%s is not started: %s", self.service.name, why)
                self._set_state("waiting")
            await asyncio.sleep(HEALTH_INTERVAL)

    async def _run_once(self) -> None:
        self._set_log_aside()
        with self._log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                *self.service.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**_inherited(), **self.service.environment},
                preexec_fn=die_with_parent,
            )
        self._set_state("starting")
        watcher = asyncio.create_task(self._watch(self._process))
        await self._process.wait()
        watcher.cancel()

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        loop = asyncio.get_running_loop()
        well = loop.time() + self.service.ready_timeout
        while process.returncode is None:
            if await self._health():
                well = loop.time() + MAX_UNHEALTHY
                self._set_state("healthy")
            elif self.state == "healthy":
                self._set_state("unwell")
            if loop.time() > well:
                log.error("%s was unwell too long: killed, to be started anew", self.service.name)
                kill(process.pid)
                return
            await asyncio.sleep(HEALTH_INTERVAL if self.state == "healthy" else POLL * 3)

    def _set_state(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self._changed()

    def _set_log_aside(self) -> None:
        if self._log.exists() and self._log.stat().st_size > LOG_LIMIT:
            self._log.replace(self._log.with_suffix(".log.1"))


def _inherited() -> dict[str, str]:
    """Return this process's environment, without the address that only one page can have."""
    return {name: value for name, value in os.environ.items() if not name.startswith(TLS_SETTING)}
