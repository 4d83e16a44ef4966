"""Answers that are the same for all who may see the same: made once, until something comes in."""

import gzip
import time
from collections.abc import Awaitable, Callable, Hashable

from starlette.requests import Request
from starlette.responses import Response

from nightwire.portal.serve.once import Once

MOST = 64
"""Most answers that are kept: pages of a megabyte at the most."""
HOLDS = 5.0
"""How long an answer holds while nothing comes in: it may speak of the last hours. [s]"""
LEVEL = 4
"""Of compression."""


class KeptAnswers:
    """The newest answers, each with its compressed form."""

    def __init__(self) -> None:
        self._made = Once[tuple[Response, bytes]](MOST)

    async def answer(self, http: Request, seen: Hashable, make: Callable[[], Awaitable[Response]]) -> Response:
        """Return the answer that *make* gives to *http*, or gave to another who asked the same.

        Args:
            http: The request; of it path and query count.
            seen: What else the answer depends on: what has come in, who may see what.
            make: Makes it; the same for everybody.
        """

        async def compressed() -> tuple[Response, bytes]:
            found = await make()
            return found, gzip.compress(found.body, LEVEL, mtime=0)

        key = http.url.path, http.url.query, seen, int(time.monotonic() / HOLDS)
        plain, packed = await self._made.get(key, compressed)
        taken = "gzip" in http.headers.get("Accept-Encoding", "")
        headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if taken else {})
        return Response(packed if taken else plain.body, plain.status_code, headers, plain.media_type)
