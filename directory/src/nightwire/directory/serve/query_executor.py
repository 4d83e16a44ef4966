"""Queries over HTTP: quick ones at once, slow ones in few threads."""

from collections import Counter

import anyio

from nightwire.directory.answers import FORMATS, Answer
from nightwire.directory.model import QueryTimeoutError, Rows, View
from nightwire.schemas.serving import RefusedError

QUICK_TIMEOUT = 0.005
"""Longest run of a query in the event loop; then it is run again in a thread. [s]"""
MAX_SLOW, MAX_SLOW_PER_USER = 4, 2
"""Most slow queries that run in parallel, and such of one address that run or wait."""
MAX_INLINE_ROWS = 100
"""Most rows that are encoded as JSON in the event loop."""


class QueryExecutor:
    """Answers queries of *view*."""

    def __init__(self, view: View) -> None:
        self._view, self._slow = view, Counter[str]()
        self._limiter: anyio.CapacityLimiter | None = None

    async def answer(self, sql: str, address: str, format: str = "json") -> tuple[str, bytes]:
        """Return media type and bytes of the answer to *sql*, in *format* (one of `FORMATS`).

        Raises:
            QueryError: The query is refused.
            RefusedError: 429: *address* has too many slow ones; 400: there is no such format.
        """
        if format not in FORMATS:
            raise RefusedError(400, f"{format!r} is no form; there are {', '.join(FORMATS)}")
        try:
            rows = self._view.query(sql, timeout=QUICK_TIMEOUT)
        except QueryTimeoutError:
            rows = await self._query_in_thread(sql, address)
        if format == "json" and len(rows.rows) <= MAX_INLINE_ROWS:
            return FORMATS[format], Answer(rows).json()
        return await anyio.to_thread.run_sync(Answer(rows).encode, format)

    async def _query_in_thread(self, sql: str, address: str) -> Rows:
        if self._slow[address] >= MAX_SLOW_PER_USER:
            raise RefusedError(429, f"{MAX_SLOW_PER_USER} long questions of yours are being answered: wait")
        self._limiter = self._limiter or anyio.CapacityLimiter(MAX_SLOW)
        self._slow[address] += 1
        try:
            return await anyio.to_thread.run_sync(self._view.query, sql, limiter=self._limiter)
        finally:
            self._slow[address] -= 1
            self._slow += Counter()  # drops zeros
