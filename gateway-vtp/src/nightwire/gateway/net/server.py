"""The listening sockets of authors and subscribers: who may connect, and conversations."""

import asyncio
import logging
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from functools import partial

from nightwire.gateway.net.access import ADDRESS, DENIED
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import CROWDED, FULL, ConnectionLimiter
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.schemas.serving import ServerTLS

log = logging.getLogger(__name__)

BACKLOG = 4096
"""Connections that may wait to be accepted: a thousand return at once after an outage."""

HANDSHAKE = "tls"
REFUSALS = {
    ADDRESS: "refused %s %s: its address is in no network that is allowed",
    DENIED: "refused %s %s: its address is in a network that is denied",
    FULL: "refused %s %s: there are as many connections as may be",
    CROWDED: "refused %s %s: there are as many connections from this address as may be",
}
"""The line in the log for each reason, one kind of line each, so that none drowns the others."""
HANDSHAKE_ERRORS = (OSError, ssl.SSLError)

Converse = Callable[[StreamReader, StreamWriter], Awaitable[None]]


class Endpoint:
    """A listening address for peers of one role: it decides who may connect, and counts them.

    Args:
        role: author or subscriber.
        address: Where to listen.
        limiter: Who may connect, and how many.
        metrics: The process's metrics.
        status: Shows who was refused.
        tls: Our certificate; needed where *address* says TLS.

    Attributes:
        limits: Connections and times.
        tls: Our certificate, where it is asked for here.
    """

    def __init__(
        self,
        role: str,
        address: Address,
        limiter: ConnectionLimiter,
        metrics: GatewayMetrics,
        status: StatusModel,
        *,
        tls: ServerTLS | None = None,
    ) -> None:
        self._role, self._address, self._limiter = role, address, limiter
        self._metrics, self._status = metrics, status
        self.limits, self.tls = limiter.limits, tls if address.tls else None
        self._connections = metrics.connections.labels(role)
        self._server: asyncio.Server | None = None

    async def open(self, make_protocol: Callable[[], asyncio.BaseProtocol]) -> Address:
        """Listen; *make_protocol* makes the protocol of each connection.

        Returns:
            The address, with the port that was free if 0 was asked for.

        Raises:
            OSError: The address is taken.
        """
        wanted, loop = self._address, asyncio.get_running_loop()
        self._server = await loop.create_server(make_protocol, wanted.host, wanted.port, backlog=BACKLOG)
        host, port = self._server.sockets[0].getsockname()[:2]
        address = Address(host, port, wanted.tls)
        log.info("listening for %ss on %s", self._role, address)
        return address

    def close(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    def admit(self, host: str) -> bool:
        """Say whether a peer at *host* may connect; count its connection if so."""
        if reason := self._limiter.refusal(host):
            self._count_refused(host, reason)
            log.warning(REFUSALS[reason], self._role, host)
            return False
        self._limiter.opened(host)  # now: a thousand may be accepted before anything else is done
        self._connections.inc()
        return True

    def closed(self, host: str) -> None:
        """Note that a connection from *host* is closed."""
        self._limiter.closed(host)
        self._connections.dec()

    def handshake_failed(self, host: str, error: Exception) -> None:
        """Note that a TLS handshake with a peer at *host* failed."""
        self._count_refused(host, HANDSHAKE)
        log.warning("refused %s %s: no TLS: %s", self._role, host, error)

    def _count_refused(self, host: str, reason: str) -> None:
        self._metrics.refused.labels(self._role, reason).inc()
        self._status.refused(self._role, host, reason)


class Listener:
    """Accept connections for conversations in streams, each a task of its own.

    Args:
        endpoint: Where.
        converse: Speaks with a peer; the connection is closed afterwards.
    """

    def __init__(self, endpoint: Endpoint, converse: Converse) -> None:
        self._endpoint, self._converse = endpoint, converse
        self._conversations: set[asyncio.Task[None]] = set()

    async def start(self) -> Address:
        """Listen; return the address.

        Raises:
            OSError: It is taken.
        """
        return await self._endpoint.open(lambda: asyncio.StreamReaderProtocol(StreamReader(), self._accepted))

    def refuse_new(self) -> None:
        """Accept no more connections."""
        self._endpoint.close()

    async def finish(self, timeout: float) -> None:
        """Wait at most *timeout* [s] for conversations to end, then end them."""
        if self._conversations:
            await asyncio.wait(self._conversations, timeout=timeout)
        for task in self._conversations:
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _accepted(self, reader: StreamReader, writer: StreamWriter) -> None:
        host = str((writer.get_extra_info("peername") or ("",))[0])
        if not self._endpoint.admit(host):
            writer.close()
            return
        if self._endpoint.tls is not None:
            # the handshake reads next
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        task = asyncio.ensure_future(self._serve(host, reader, writer))
        self._conversations.add(task)
        task.add_done_callback(partial(self._ended, host))

    def _ended(self, host: str, task: asyncio.Task[None]) -> None:
        self._endpoint.closed(host)
        self._conversations.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a conversation failed", exc_info=error)

    async def _serve(self, host: str, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            if await self._secured(host, writer):
                await self._converse(reader, writer)
        except OSError as error:
            log.debug("%s: %s", host, error)
        finally:
            await _close(writer, self._endpoint.limits.last_bytes)

    async def _secured(self, host: str, writer: StreamWriter) -> bool:
        """Do the TLS handshake, where one is asked for; say whether it worked."""
        endpoint = self._endpoint
        if endpoint.tls is None:
            return True
        try:
            await writer.start_tls(
                endpoint.tls.context(), ssl_handshake_timeout=endpoint.limits.frame_timeout
            )
        except HANDSHAKE_ERRORS as error:
            endpoint.handshake_failed(host, error)
            return False
        return True


async def _close(writer: StreamWriter, timeout: float) -> None:
    """Close; abort where the peer does not take what is left within *timeout* [s]."""
    writer.close()
    if not writer.transport.get_write_buffer_size() and writer.get_extra_info("ssl_object") is None:
        return  # nothing is left
    try:
        async with asyncio.timeout(timeout):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
