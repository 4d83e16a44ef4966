"""Connections from authors: each is given an `AuthorProtocol` of its own."""

import asyncio
from collections.abc import Callable, Iterable

from nightwire.gateway.ingest.author_protocol import AuthorProtocol, ConnectionCallback
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.server import HANDSHAKE_ERRORS, Endpoint
from nightwire.schemas.serving import ServerTLS

SWEEP = 0.5
"""Time between looks at who is silent. [s]"""


class AuthorListener:
    """Accept connections from authors.

    Args:
        endpoint: Where.
        make_protocol: Makes the protocol of each connection.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        make_protocol: Callable[[ConnectionCallback, ConnectionCallback], AuthorProtocol],
    ) -> None:
        self._endpoint, self._make_protocol = endpoint, make_protocol
        self._open: set[AuthorProtocol] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = asyncio.Event()

    async def start(self) -> Address:
        """Listen; return the address.

        Raises:
            OSError: It is taken.
        """
        self._tasks.add(asyncio.ensure_future(sweep(self._open, SWEEP)))
        return await self._endpoint.open(lambda: self._make_protocol(self._opened, self._closed))

    def refuse_new(self) -> None:
        """Accept no more connections."""
        self._endpoint.close()

    async def finish(self, timeout: float) -> None:
        """Wait at most *timeout* [s] for conversations to end, then end them."""
        try:
            async with asyncio.timeout(timeout):
                while self._open:
                    self._left.clear()
                    await self._left.wait()
        except TimeoutError:
            pass
        for author in list(self._open):
            author.hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _opened(self, author: AuthorProtocol) -> None:
        """Let *author* in, or close the connection."""
        if not self._endpoint.admit(author.host):
            author.transport.close()
            return
        self._open.add(author)
        if self._endpoint.tls is not None:
            author.transport.pause_reading()  # the handshake reads next
            task = asyncio.ensure_future(self._secure(self._endpoint.tls, author))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _closed(self, author: AuthorProtocol) -> None:
        if author in self._open:
            self._open.remove(author)
            self._endpoint.closed(author.host)
            self._left.set()

    async def _secure(self, tls: ServerTLS, author: AuthorProtocol) -> None:
        start_tls, timeout = asyncio.get_running_loop().start_tls, self._endpoint.limits.frame_timeout
        try:
            secured = await start_tls(
                author.transport, author, tls.context(), server_side=True, ssl_handshake_timeout=timeout
            )
        except HANDSHAKE_ERRORS as error:
            self._endpoint.handshake_failed(author.host, error)
            author.transport.abort()
            author.connection_lost(error)
            return
        if secured is not None:  # None: the author is gone
            author.secured(secured)


async def sweep(authors: Iterable[AuthorProtocol], interval: float) -> None:
    """Every *interval* [s] hang up on those of *authors* whose time is up, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(interval)
        for author in authors:
            loop.call_soon(author.check_deadline)
