"""HTTP connections of strangers: headers come in time, and no client takes all connections."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from nightwire.schemas.serving.tries import source_of

HEADER_TIMEOUT = 20.0
"""Longest time until the headers of a request are there. [s]"""
MAX_OF_ONE = 128
"""Most connections of one `source_of`, where connections are limited at all."""


class BoundedProtocol(H11Protocol):
    """HTTP by h11, which bounds headers; it closes connections without a request, and too many."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.source = ""
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or close it where its client has too many."""
        super().connection_made(transport)
        self._await_headers()
        self.source = source_of(self.client[0]) if self.client else ""
        if self.limit_concurrency is not None and self._count_of_source() > MAX_OF_ONE:
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what was sent; what is no whole request yet has to be one in time."""
        super().data_received(data)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timeout()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_timeout()
        elif self._timeout is None:
            self._timeout = self.loop.call_later(HEADER_TIMEOUT, self.transport.close)

    def _stop_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _count_of_source(self) -> int:
        return sum(getattr(one, "source", None) == self.source for one in self.connections)
