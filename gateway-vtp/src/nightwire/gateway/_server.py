"""The sockets that authors and subscribers connect to."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from nightwire.gateway._access import AccessList
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._settings import Address

log = logging.getLogger(__name__)

BACKLOG = 4096
"""Connections that may wait to be accepted: a thousand subscribers come back at once after an outage."""

Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """Accept connections for one role.

    Args:
        role: author or subscriber.
        address: Where to listen.
        access: Who may connect.
        converse: What to do with a connection; it is closed afterwards.
        max_connections: Most at once.
        metrics: The process's metrics.
    """

    def __init__(
        self,
        role: str,
        address: Address,
        access: AccessList,
        converse: Converse,
        *,
        max_connections: int,
        metrics: GatewayMetrics,
    ) -> None:
        self._role, self._address, self._access, self._converse = role, address, access, converse
        self._max_connections, self._metrics = max_connections, metrics
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        """Listen; return the address, with the port that was free if 0 was asked for.

        Raises:
            OSError: The address is taken.
        """
        where = self._address
        self._server = await asyncio.start_server(self._accepted, where.host, where.port, backlog=BACKLOG)
        host, port = self._server.sockets[0].getsockname()[:2]
        log.info("listening for %ss on %s", self._role, Address(host, port))
        return Address(host, port)

    def refuse_new(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()

    async def finish(self, patience: float) -> None:
        """Wait at most *patience* [s] for conversations to end, then end them."""
        if self._open:
            await asyncio.wait(self._open, timeout=patience)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = str((writer.get_extra_info("peername") or ("",))[0])
        if reason := self._refusal(host):
            self._metrics.refused.labels(self._role, reason).inc()
            log.warning("refused %s %s: %s", self._role, host, reason)
            writer.close()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    def _refusal(self, host: str) -> str | None:
        if not self._access.admits(host):
            return "address"
        return "full" if len(self._open) >= self._max_connections else None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._metrics.connections.labels(self._role).track_inprogress():
            try:
                await self._converse(reader, writer)
            except OSError as error:
                log.debug("%s: %s", self._role, error)
            except Exception:
                log.exception("a conversation with a %s failed", self._role)
            finally:
                writer.close()
