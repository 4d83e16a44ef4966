"""The sockets that authors and subscribers connect to."""

import asyncio
import logging
import ssl
from abc import ABC, abstractmethod
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from functools import partial

from nightwire.gateway._access import ADDRESS, DENIED
from nightwire.gateway._author_line import AuthorLine
from nightwire.gateway._board import Board
from nightwire.gateway._limits import CROWDED, FULL, Guard
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._settings import Address
from nightwire.gateway._tls import ServerTLS, TLSError

log = logging.getLogger(__name__)

BACKLOG = 4096
"""Connections that may wait to be accepted: a thousand subscribers come back at once after an outage."""

HANDSHAKE = "tls"
REFUSALS = {
    ADDRESS: "refused %s %s: its address is in no network that is allowed",
    DENIED: "refused %s %s: its address is in a network that is denied",
    FULL: "refused %s %s: there are as many connections as may be",
    CROWDED: "refused %s %s: there are as many connections from this address as may be",
}
"""The line in the log for each reason, one kind of line each, so that none drowns the others."""
NO_TLS = (OSError, ssl.SSLError, TLSError)
"""What a handshake may end in."""

Converse = Callable[[StreamReader, StreamWriter], Awaitable[None]]


class Door(ABC):
    """Accept connections for one role, as many as may be.

    Args:
        role: author or subscriber.
        address: Where to listen.
        guard: Who may connect, and how many.
        metrics: The process's metrics.
        board: What the status page shows.
        tls: Our certificate; needed where *address* says TLS.
    """

    def __init__(
        self,
        role: str,
        address: Address,
        guard: Guard,
        metrics: GatewayMetrics,
        board: Board,
        *,
        tls: ServerTLS | None = None,
    ) -> None:
        self._role, self._address, self._guard = role, address, guard
        self._metrics, self._board = metrics, board
        self._tls = tls if address.tls else None
        self._present = metrics.connections.labels(role)
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        """Listen; return the address, with the port that was free if 0 was asked for.

        Raises:
            OSError: The address is taken.
        """
        where, loop = self._address, asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, where.host, where.port, backlog=BACKLOG)
        host, port = self._server.sockets[0].getsockname()[:2]
        found = Address(host, port, where.tls)
        log.info("listening for %ss on %s", self._role, found)
        return found

    def refuse_new(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    @abstractmethod
    async def finish(self, patience: float) -> None:
        """Wait at most *patience* [s] for conversations to end, then end them."""

    @abstractmethod
    def _protocol(self) -> asyncio.Protocol:
        """Return what takes the next connection."""

    def _enters(self, host: str) -> bool:
        """Say whether a peer at *host* may come in; count it as here if so."""
        if reason := self._guard.refusal(host):
            self._refuse(host, reason)
            log.warning(REFUSALS[reason], self._role, host)
            return False
        self._guard.enter(host)  # now, for a thousand may be accepted before anything else is done
        self._present.inc()
        return True

    def _leaves(self, host: str) -> None:
        self._guard.leave(host)
        self._present.dec()

    def _refuse(self, host: str, reason: str) -> None:
        self._metrics.refused.labels(self._role, reason).inc()
        self._board.refused(self._role, host, reason)

    def _refuse_handshake(self, host: str, error: Exception) -> None:
        self._refuse(host, HANDSHAKE)
        log.warning("refused %s %s: no TLS: %s", self._role, host, error)


class Listener(Door):
    """Accept connections for conversations in streams, each a task of its own.

    Args:
        role: author or subscriber.
        address: Where to listen.
        converse: What to do with a connection; it is closed afterwards.
        guard: Who may connect, and how many.
        metrics: The process's metrics.
        board: What the status page shows.
        tls: Our certificate; needed where *address* says TLS.
    """

    def __init__(
        self,
        role: str,
        address: Address,
        converse: Converse,
        guard: Guard,
        metrics: GatewayMetrics,
        board: Board,
        *,
        tls: ServerTLS | None = None,
    ) -> None:
        super().__init__(role, address, guard, metrics, board, tls=tls)
        self._converse = converse
        self._open: set[asyncio.Task[None]] = set()

    async def finish(self, patience: float) -> None:
        """Wait at most *patience* [s] for conversations to end, then end them."""
        if self._open:
            await asyncio.wait(self._open, timeout=patience)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _protocol(self) -> asyncio.Protocol:
        return asyncio.StreamReaderProtocol(StreamReader(), self._accepted)

    def _accepted(self, reader: StreamReader, writer: StreamWriter) -> None:
        host = str((writer.get_extra_info("peername") or ("",))[0])
        if not self._enters(host):
            writer.close()
            return
        if self._tls is not None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # the handshake reads next
        task = asyncio.ensure_future(self._serve(host, reader, writer))
        self._open.add(task)
        task.add_done_callback(partial(self._left, host))

    def _left(self, host: str, task: asyncio.Task[None]) -> None:
        self._leaves(host)
        self._open.discard(task)

    async def _serve(self, host: str, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            if await self._greeted(host, writer):
                await self._converse(reader, writer)
        except OSError as error:
            log.debug("%s: %s", self._role, error)
        except Exception:
            log.exception("a conversation with a %s failed", self._role)
        finally:
            await _close(writer, self._guard.limits.last_bytes)

    async def _greeted(self, host: str, writer: StreamWriter) -> bool:
        """Shake hands, where that is asked for; say whether it worked."""
        if self._tls is None:
            return True
        try:
            await writer.start_tls(
                self._tls.context(), ssl_handshake_timeout=self._guard.limits.frame_timeout
            )
        except NO_TLS as error:
            self._refuse_handshake(host, error)
            return False
        return True


MakeLine = Callable[[Callable[[], None]], AuthorLine]
"""Makes a line; it is given what to call when the connection is gone."""


class AuthorListener(Door):
    """Accept connections from authors, each an `AuthorLine`.

    Args:
        address: Where to listen.
        make_line: Makes the line of each.
        guard: Who may connect, and how many.
        metrics: The process's metrics.
        board: What the status page shows.
        tls: Our certificate; needed where *address* says TLS.
    """

    def __init__(
        self,
        address: Address,
        make_line: MakeLine,
        guard: Guard,
        metrics: GatewayMetrics,
        board: Board,
        *,
        tls: ServerTLS | None = None,
    ) -> None:
        super().__init__("author", address, guard, metrics, board, tls=tls)
        self._make_line = make_line
        self._open: dict[AuthorLine, str] = {}
        self._greeting: set[asyncio.Task[None]] = set()
        self._fewer = asyncio.Event()

    async def finish(self, patience: float) -> None:
        """Wait at most *patience* [s] for conversations to end, then end them."""
        try:
            async with asyncio.timeout(patience):
                while self._open:
                    self._fewer.clear()
                    await self._fewer.wait()
        except TimeoutError:
            pass
        for line in list(self._open):
            line.hang_up()
        for task in self._greeting:
            task.cancel()
        await asyncio.gather(*self._greeting, return_exceptions=True)

    def _protocol(self) -> asyncio.Protocol:
        return _Entrance(self._came)

    def _came(self, transport: asyncio.Transport) -> None:
        host = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._enters(host):
            transport.close()
            return
        line = self._make_line(lambda: self._gone(line))
        self._open[line] = host
        transport.set_protocol(line)
        line.connection_made(transport)
        if self._tls is not None:
            transport.pause_reading()  # the handshake reads next
            task = asyncio.ensure_future(self._greet(self._tls, line, transport, host))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    def _gone(self, line: AuthorLine) -> None:
        host = self._open.pop(line, None)
        if host is not None:
            self._leaves(host)
            self._fewer.set()

    async def _greet(self, tls: ServerTLS, line: AuthorLine, transport: asyncio.Transport, host: str) -> None:
        start = asyncio.get_running_loop().start_tls
        patience = self._guard.limits.frame_timeout
        try:
            secured = await start(
                transport, line, tls.context(), server_side=True, ssl_handshake_timeout=patience
            )
        except NO_TLS as error:
            self._refuse_handshake(host, error)
            transport.abort()
            line.connection_lost(error)
            return
        if secured is not None:  # or he is gone
            line.secured(secured)


class _Entrance(asyncio.Protocol):
    """Hands a new connection on."""

    def __init__(self, came: Callable[[asyncio.Transport], None]) -> None:
        self._came = came

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._came(transport)  # type: ignore[arg-type]


def peer_name(writer: StreamWriter) -> str:
    """Return the address and port of a peer, for the log."""
    host, port = (writer.get_extra_info("peername") or ("?", 0))[:2]
    return str(Address(host, port))


async def _close(writer: StreamWriter, patience: float) -> None:
    """Close, and cut the connection off where the peer does not take what is left within *patience* [s]."""
    writer.close()
    if not writer.transport.get_write_buffer_size() and writer.get_extra_info("ssl_object") is None:
        return  # nothing is left
    try:
        async with asyncio.timeout(patience):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
