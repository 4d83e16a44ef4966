"""Single flight: what several requests want at once is made once; a cache of responses."""

import gzip
import time
from asyncio import Future, ensure_future, shield
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response

MAX_RESPONSES = 64
"""Most responses that are cached: pages of a megabyte at the most."""
MAX_AGE = 5.0
"""How long a response is valid while no alert comes in: it may be about the last hours. [s]"""
GZIP_LEVEL = 4

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """The newest results by key, and those being made.

    Args:
        most: Most results that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most, self._results = most, OrderedDict[Hashable, Future[Result]]()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of *make* for *key*, also to those who wait; errors are not kept."""
        if key not in self._results:
            self._results[key] = ensure_future(make())
            if len(self._results) > self._most:
                self._results.popitem(last=False)
        found = self._results[key]
        try:
            return await shield(found)  # a request that is cancelled cancels it for nobody else
        except Exception:
            if self._results.get(key) is found:
                del self._results[key]
            raise

    def forget(self, key: Hashable) -> None:
        """Drop the result for *key*; those who wait still get the one being made."""
        self._results.pop(key, None)


class ResponseCache:
    """Cache of the newest responses, each also compressed."""

    def __init__(self) -> None:
        self._results = SingleFlight[tuple[Response, bytes]](MAX_RESPONSES)

    async def respond(
        self, http: Request, seen: Hashable, make: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the response of *make*, or the cached one to an equal request.

        Args:
            http: The request; its path and query string are the key.
            seen: Further key: the newest alert, the topics that the user may read.
            make: Makes the response, which is the same for everybody.
        """

        async def compressed() -> tuple[Response, bytes]:
            found = await make()
            return found, gzip.compress(found.body, GZIP_LEVEL, mtime=0)

        asked = http.scope["path"], http.scope["query_string"]  # `http.url` is made with the header Host
        key = *asked, seen, int(time.monotonic() / MAX_AGE)
        plain, packed = await self._results.get(key, compressed)
        taken = "gzip" in http.headers.get("Accept-Encoding", "")
        headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if taken else {})
        return Response(packed if taken else plain.body, plain.status_code, headers, plain.media_type)
