"""Connections from authors: each is given an `AuthorProtocol` of its own."""

import asyncio
from collections.abc import Callable

from nightwire.gateway.ingest.author_protocol import AuthorProtocol
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.server import HANDSHAKE_ERRORS, Endpoint
from nightwire.schemas.serving import ServerTLS

MakeProtocol = Callable[[Callable[[], None]], AuthorProtocol]
"""Makes a protocol; its argument is called when the connection is gone."""


class AuthorListener:
    """Accept connections from authors.

    Args:
        endpoint: Where.
        make_protocol: Makes the protocol of each connection.
    """

    def __init__(self, endpoint: Endpoint, make_protocol: MakeProtocol) -> None:
        self._endpoint, self._make_protocol = endpoint, make_protocol
        self._open: dict[AuthorProtocol, str] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        self._closed = asyncio.Event()

    async def start(self) -> Address:
        """Listen; return the address.

        Raises:
            OSError: It is taken.
        """
        return await self._endpoint.open(lambda: _NewConnection(self._connected))

    def refuse_new(self) -> None:
        """Accept no more connections."""
        self._endpoint.close()

    async def finish(self, timeout: float) -> None:
        """Wait at most *timeout* [s] for conversations to end, then end them."""
        try:
            async with asyncio.timeout(timeout):
                while self._open:
                    self._closed.clear()
                    await self._closed.wait()
        except TimeoutError:
            pass
        for protocol in list(self._open):
            protocol.hang_up()
        for task in self._handshakes:
            task.cancel()
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _connected(self, transport: asyncio.Transport) -> None:
        host = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._endpoint.admit(host):
            transport.close()
            return
        protocol = self._make_protocol(lambda: self._forget(protocol))
        self._open[protocol] = host
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._endpoint.tls is not None:
            transport.pause_reading()  # the handshake reads next
            task = asyncio.ensure_future(self._secure(self._endpoint.tls, protocol, transport, host))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    def _forget(self, protocol: AuthorProtocol) -> None:
        host = self._open.pop(protocol, None)
        if host is not None:
            self._endpoint.closed(host)
            self._closed.set()

    async def _secure(
        self, tls: ServerTLS, protocol: AuthorProtocol, transport: asyncio.Transport, host: str
    ) -> None:
        start_tls = asyncio.get_running_loop().start_tls
        timeout = self._endpoint.limits.frame_timeout
        try:
            secured = await start_tls(
                transport, protocol, tls.context(), server_side=True, ssl_handshake_timeout=timeout
            )
        except HANDSHAKE_ERRORS as error:
            self._endpoint.handshake_failed(host, error)
            transport.abort()
            protocol.connection_lost(error)
            return
        if secured is not None:  # None: the author is gone
            protocol.secured(secured)


class _NewConnection(asyncio.Protocol):
    """Hands a new connection on."""

    def __init__(self, connected: Callable[[asyncio.Transport], None]) -> None:
        self._connected = connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connected(transport)  # type: ignore[arg-type]
