"""The sockets that authors and subscribers connect to."""

import asyncio
import logging
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from functools import partial

from nightwire.gateway.net.access import ADDRESS, DENIED
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import CROWDED, FULL, ConnectionLimiter
from nightwire.gateway.net.tls import ServerTLS, TLSError
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel

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


class Endpoint:
    """An address that peers of one role come to: it knows who may come in, and who is here.

    Args:
        role: author or subscriber.
        address: Where to listen.
        guard: Who may connect, and how many.
        metrics: The process's metrics.
        board: What the status page shows.
        tls: Our certificate; needed where *address* says TLS.

    Attributes:
        limits: What is borne here.
        tls: Our certificate, where it is asked for here.
    """

    def __init__(
        self,
        role: str,
        address: Address,
        guard: ConnectionLimiter,
        metrics: GatewayMetrics,
        board: StatusModel,
        *,
        tls: ServerTLS | None = None,
    ) -> None:
        self._role, self._address, self._guard = role, address, guard
        self._metrics, self._board = metrics, board
        self.limits, self.tls = guard.limits, tls if address.tls else None
        self._present = metrics.connections.labels(role)
        self._server: asyncio.Server | None = None

    async def open(self, make: Callable[[], asyncio.Protocol]) -> Address:
        """Listen, and *make* what takes each connection.

        Returns:
            The address, with the port that was free if 0 was asked for.

        Raises:
            OSError: The address is taken.
        """
        where, loop = self._address, asyncio.get_running_loop()
        self._server = await loop.create_server(make, where.host, where.port, backlog=BACKLOG)
        host, port = self._server.sockets[0].getsockname()[:2]
        found = Address(host, port, where.tls)
        log.info("listening for %ss on %s", self._role, found)
        return found

    def close(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    def enters(self, host: str) -> bool:
        """Say whether a peer at *host* may come in; count it as here if so."""
        if reason := self._guard.refusal(host):
            self._refuse(host, reason)
            log.warning(REFUSALS[reason], self._role, host)
            return False
        self._guard.enter(host)  # now, for a thousand may be accepted before anything else is done
        self._present.inc()
        return True

    def leaves(self, host: str) -> None:
        """Note that a peer at *host* left."""
        self._guard.leave(host)
        self._present.dec()

    def _refuse(self, host: str, reason: str) -> None:
        self._metrics.refused.labels(self._role, reason).inc()
        self._board.refused(self._role, host, reason)

    def refuse_handshake(self, host: str, error: Exception) -> None:
        """Note that a peer at *host* and we did not come to speak TLS."""
        self._refuse(host, HANDSHAKE)
        log.warning("refused %s %s: no TLS: %s", self._role, host, error)


class Listener:
    """Accept connections for conversations in streams, each a task of its own.

    Args:
        door: Where.
        converse: What to do with a connection; it is closed afterwards.
    """

    def __init__(self, door: Endpoint, converse: Converse) -> None:
        self._door, self._converse = door, converse
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> Address:
        """Listen; return the address.

        Raises:
            OSError: It is taken.
        """
        return await self._door.open(lambda: asyncio.StreamReaderProtocol(StreamReader(), self._accepted))

    def refuse_new(self) -> None:
        """Accept no more connections."""
        self._door.close()

    async def finish(self, patience: float) -> None:
        """Wait at most *patience* [s] for conversations to end, then end them."""
        if self._open:
            await asyncio.wait(self._open, timeout=patience)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accepted(self, reader: StreamReader, writer: StreamWriter) -> None:
        host = str((writer.get_extra_info("peername") or ("",))[0])
        if not self._door.enters(host):
            writer.close()
            return
        if self._door.tls is not None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # the handshake reads next
        task = asyncio.ensure_future(self._serve(host, reader, writer))
        self._open.add(task)
        task.add_done_callback(partial(self._left, host))

    def _left(self, host: str, task: asyncio.Task[None]) -> None:
        self._door.leaves(host)
        self._open.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a conversation failed", exc_info=error)

    async def _serve(self, host: str, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            if await self._greeted(host, writer):
                await self._converse(reader, writer)
        except OSError as error:
            log.debug("%s: %s", host, error)
        finally:
            await _close(writer, self._door.limits.last_bytes)

    async def _greeted(self, host: str, writer: StreamWriter) -> bool:
        """Shake hands, where that is asked for; say whether it worked."""
        if self._door.tls is None:
            return True
        try:
            await writer.start_tls(
                self._door.tls.context(), ssl_handshake_timeout=self._door.limits.frame_timeout
            )
        except NO_TLS as error:
            self._door.refuse_handshake(host, error)
            return False
        return True


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
