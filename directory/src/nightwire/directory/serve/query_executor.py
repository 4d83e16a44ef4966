"""QueryExecutor over HTTP: the quick ones at once, the slow ones behind them, few at a time."""

from collections import Counter

import anyio

from nightwire.directory.answers import FORMS, Answer
from nightwire.directory.model import QueryTimeoutError, Rows, View
from nightwire.schemas.serving import RefusedError

QUICK_TIMEOUT = 0.005
"""Time that a question has before it goes behind the others. [s]"""
MAX_SLOW, MAX_SLOW_PER_ADDRESS = 4, 2
"""Slow questions that run at once, and those of one address that may wait for it."""
MAX_INLINE_ROWS = 100
"""Rows that are written as JSON in passing."""


class QueryExecutor:
    """Answers questions to *view*."""

    def __init__(self, view: View) -> None:
        self._view, self._slow = view, Counter[str]()
        self._limiter: anyio.CapacityLimiter | None = None

    async def answer(self, sql: str, address: str, form: str = "json") -> tuple[str, bytes]:
        """Return media type and bytes of the answer to *sql*, in *form* (one of `FORMS`).

        Raises:
            QueryError: The question is refused.
            RefusedError: 429: *address* has too many slow ones; 400: there is no such form.
        """
        if form not in FORMS:
            raise RefusedError(400, f"{form!r} is no form; there are {', '.join(FORMS)}")
        try:
            rows = self._view.query(sql, timeout=QUICK_TIMEOUT)
        except QueryTimeoutError:
            rows = await self._query_in_thread(sql, address)
        if form == "json" and len(rows.rows) <= MAX_INLINE_ROWS:
            return FORMS[form], Answer(rows).json()
        return await anyio.to_thread.run_sync(Answer(rows).form, form)

    async def _query_in_thread(self, sql: str, address: str) -> Rows:
        if self._slow[address] >= MAX_SLOW_PER_ADDRESS:
            raise RefusedError(
                429, f"{MAX_SLOW_PER_ADDRESS} long questions of yours are being answered: wait"
            )
        self._limiter = self._limiter or anyio.CapacityLimiter(MAX_SLOW)
        self._slow[address] += 1
        try:
            return await anyio.to_thread.run_sync(self._view.query, sql, limiter=self._limiter)
        finally:
            self._slow[address] -= 1
            self._slow += Counter()  # forget addresses that have none
