"""Connections from authors: each is given a line of its own."""

import asyncio
from collections.abc import Callable

from nightwire.gateway.ingest.author_protocol import AuthorProtocol
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.server import NO_TLS, Endpoint
from nightwire.gateway.net.tls import ServerTLS

MakeProtocol = Callable[[Callable[[], None]], AuthorProtocol]
"""Makes a line; it is given what to call when the connection is gone."""


class AuthorListener:
    """Accept connections from authors, each an `AuthorProtocol`.

    Args:
        door: Where.
        make_line: Makes the line of each.
    """

    def __init__(self, door: Endpoint, make_line: MakeProtocol) -> None:
        self._door, self._make_line = door, make_line
        self._open: dict[AuthorProtocol, str] = {}
        self._greeting: set[asyncio.Task[None]] = set()
        self._fewer = asyncio.Event()

    async def start(self) -> Address:
        """Listen; return the address.

        Raises:
            OSError: It is taken.
        """
        return await self._door.open(lambda: _NewConnection(self._came))

    def refuse_new(self) -> None:
        """Accept no more connections."""
        self._door.close()

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

    def _came(self, transport: asyncio.Transport) -> None:
        host = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._door.enters(host):
            transport.close()
            return
        line = self._make_line(lambda: self._gone(line))
        self._open[line] = host
        transport.set_protocol(line)
        line.connection_made(transport)
        if self._door.tls is not None:
            transport.pause_reading()  # the handshake reads next
            task = asyncio.ensure_future(self._greet(self._door.tls, line, transport, host))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    def _gone(self, line: AuthorProtocol) -> None:
        host = self._open.pop(line, None)
        if host is not None:
            self._door.leaves(host)
            self._fewer.set()

    async def _greet(
        self, tls: ServerTLS, line: AuthorProtocol, transport: asyncio.Transport, host: str
    ) -> None:
        start = asyncio.get_running_loop().start_tls
        patience = self._door.limits.frame_timeout
        try:
            secured = await start(
                transport, line, tls.context(), server_side=True, ssl_handshake_timeout=patience
            )
        except NO_TLS as error:
            self._door.refuse_handshake(host, error)
            transport.abort()
            line.connection_lost(error)
            return
        if secured is not None:  # or he is gone
            line.secured(secured)


class _NewConnection(asyncio.Protocol):
    """Hands a new connection on."""

    def __init__(self, came: Callable[[asyncio.Transport], None]) -> None:
        self._came = came

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._came(transport)  # type: ignore[arg-type]
