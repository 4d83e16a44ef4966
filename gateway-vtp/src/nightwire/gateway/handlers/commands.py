"""Commands as handlers: a process for each event, in bounded number and time."""

import asyncio
import os
import signal
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Protocol

from nightwire.core.runtime import clean_environment
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.handlers.progress import HandlerOutcome, HandlerResult
from nightwire.gateway.handlers.settings import HandlerSpec

GRACE = 1.0
"""Time between SIGTERM and SIGKILL. [s]"""
STDERR = 2


class Runner(Protocol):
    """Gives events to one handler.

    Attributes:
        jobs: How many it takes at once.
    """

    jobs: int

    async def start(self) -> None:
        """Get ready.

        Raises:
            PluginError: The handler cannot work.
        """

    async def run(self, event: Event) -> HandlerResult:
        """Have the handler act on *event*.  Cancelled, it ends what it began."""

    async def close(self) -> None:
        """End its processes."""


class CommandRunner:
    """Run a command for each event, the packet on its standard input.

    What it prints goes to the gateway's standard error.

    Args:
        spec: The handler.
        jobs: Most runs at once.
        timeout: Longest run; then the command and its children are ended. [s]
    """

    def __init__(self, spec: HandlerSpec, jobs: int, timeout: float) -> None:
        self._command, self._timeout, self.jobs = spec.command, timeout, jobs

    async def start(self) -> None:
        """There is nothing to get ready."""

    async def run(self, event: Event) -> HandlerResult:
        """Run the command on *event*, and return how that ended."""
        try:
            process = await self._start(event)
        except OSError as error:  # a full disk among them
            return HandlerResult(HandlerOutcome.NOT_STARTED, str(error))
        try:
            async with asyncio.timeout(self._timeout):
                return status_result(await process.wait())
        except TimeoutError:
            return HandlerResult(HandlerOutcome.LATE, f"not done within {self._timeout:g} s, and killed")
        finally:
            await end_group(process)

    async def close(self) -> None:
        """Every run ends its own process."""

    async def _start(self, event: Event) -> asyncio.subprocess.Process:
        with TemporaryFile() as packet:
            packet.write(event.document)
            packet.seek(0)
            return await asyncio.create_subprocess_exec(
                *self._command,
                stdin=packet,
                stdout=STDERR,
                env={**clean_environment(os.environ), **event_environment(event)},
                start_new_session=True,
            )


async def end_group(process: asyncio.subprocess.Process) -> None:
    """End *process*, if it runs, with all its group: by SIGTERM, then by SIGKILL."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await process.wait()
    with suppress(ProcessLookupError):  # those of the group that go on
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def status_result(status: int) -> HandlerResult:
    """Return the result that the exit *status* of a command means; negative is a signal."""
    if status == 0:
        return HandlerResult(HandlerOutcome.DONE)
    reason = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
    return HandlerResult(HandlerOutcome.FAILED, reason)


def event_environment(event: Event) -> dict[str, str]:
    """Return the environment variables that describe *event* to a command.

    Topic, partition and offset name the event for ever: after a crash it may come a second time.
    """
    return {
        "VOEVENT_IVORN": event.ivorn[:1000],
        "VOEVENT_ROLE": event.role[:100],
        "VOEVENT_TOPIC": event.topic,
        "VOEVENT_PARTITION": str(event.partition),
        "VOEVENT_OFFSET": str(event.offset),
    }
