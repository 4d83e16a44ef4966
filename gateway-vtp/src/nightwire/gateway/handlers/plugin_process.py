"""A plug-in as a handler: one event after the other goes to the process of the plug-in."""

import asyncio
import json
import os
import socket
import sys
from contextlib import suppress

from nightwire.core.runtime import clean_environment
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.handlers.commands import end_group
from nightwire.gateway.handlers.plugins import PluginError
from nightwire.gateway.handlers.progress import HandlerOutcome, HandlerResult
from nightwire.gateway.handlers.settings import HandlerSpec

START_TIMEOUT = 60.0
"""Longest time that a plug-in may take to be imported. [s]"""
HOST = "nightwire.gateway.handlers.plugin_host"


class PluginRunner:
    """Keep a plug-in in its own process, which is killed and restarted when it takes too long.

    Args:
        spec: The handler.
        timeout: Longest time over one event. [s]
    """

    jobs = 1

    def __init__(self, spec: HandlerSpec, timeout: float) -> None:
        self._spec, self._timeout = spec, timeout
        self._host: _Host | None = None

    async def start(self) -> None:
        """Start the process.

        Raises:
            PluginError: The plug-in cannot be used.
        """
        self._host = await _start_host(self._spec)

    async def run(self, event: Event) -> HandlerResult:
        """Have the plug-in act on *event*."""
        try:
            self._host = self._host or await _start_host(self._spec)
        except PluginError as error:
            return HandlerResult(HandlerOutcome.NOT_STARTED, str(error))
        try:
            async with asyncio.timeout(self._timeout):
                reason = await self._host.act(event)
        except TimeoutError:
            await self.close()
            return HandlerResult(HandlerOutcome.LATE, f"not done within {self._timeout:g} s, and killed")
        except OSError as error:
            await self.close()
            return HandlerResult(HandlerOutcome.FAILED, f"its process ended ({error})")
        except asyncio.CancelledError:
            await self.close()
            raise
        return HandlerResult(HandlerOutcome.FAILED, reason) if reason else HandlerResult(HandlerOutcome.DONE)

    async def close(self) -> None:
        """End the process."""
        host, self._host = self._host, None
        if host is not None:
            await host.close()


class _Host:
    """The process, and our end of the socket to it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer

    async def act(self, event: Event) -> str:
        """Hand over *event*; return what went wrong, empty if nothing did.

        Raises:
            OSError: The process is gone.
        """
        record = {"topic": event.topic, "partition": event.partition, "offset": event.offset}
        header = json.dumps({**record, "bytes": len(event.document)})
        self._writer.write(header.encode() + b"\n" + event.document)
        await self._writer.drain()
        return await self.answer()

    async def answer(self) -> str:
        """Return the next answer.

        Raises:
            OSError: The process is gone.
        """
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("it hung up")
        return str(json.loads(line)["reason"])

    async def close(self) -> None:
        self._writer.close()
        await end_group(self._process)
        with suppress(OSError):
            await self._writer.wait_closed()


async def _start_host(spec: HandlerSpec) -> _Host:
    """Start the process of a plug-in, and wait until it has imported it.

    Raises:
        PluginError: It cannot be used.
    """
    try:
        host = await _spawn(spec)
    except OSError as error:  # no more files or processes may be opened
        raise PluginError(f"plug-in {spec.name} does not start: {error}") from error
    try:
        async with asyncio.timeout(START_TIMEOUT):
            reason = await host.answer()
    except (OSError, TimeoutError) as error:
        reason = f"plug-in {spec.name} does not start: {error or 'it takes too long'}"
    if reason:
        await host.close()
        raise PluginError(reason)
    return host


async def _spawn(spec: HandlerSpec) -> _Host:
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", HOST, spec.name, json.dumps(dict(spec.options))),
            stdin=theirs.fileno(),
            env=clean_environment(os.environ),
            start_new_session=True,
        )
    return _Host(process, *await asyncio.open_connection(sock=ours))
