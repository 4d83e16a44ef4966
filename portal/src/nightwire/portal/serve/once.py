"""What many ask for at the same time is made once: pictures, events, whole answers."""

import gzip
import time
from asyncio import Future, ensure_future, shield
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response

MOST = 64
"""Most answers that are kept: pages of a megabyte at the most."""
HOLDS = 5.0
"""How long an answer holds while nothing comes in: it may speak of the last hours. [s]"""
LEVEL = 4
"""Of compression."""

Made = TypeVar("Made")


class Once(Generic[Made]):
    """The newest *most* of what was made, and what is being made.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._most, self._made = most, OrderedDict[Hashable, Future[Made]]()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Made:
        """Return what *make* returned for *key*; what it raised is raised, and not kept."""
        if key not in self._made:
            self._made[key] = ensure_future(make())
            if len(self._made) > self._most:
                self._made.popitem(last=False)
        found = self._made[key]
        try:
            return await shield(found)  # who leaves takes it from nobody else
        except Exception:
            if self._made.get(key) is found:
                del self._made[key]
            raise

    def forget(self, key: Hashable) -> None:
        """Make it anew for who asks next; who waits gets what is being made."""
        self._made.pop(key, None)


class KeptAnswers:
    """The newest answers, each with its compressed form."""

    def __init__(self) -> None:
        self._made = Once[tuple[Response, bytes]](MOST)

    async def answer(
        self, http: Request, seen: Hashable, make: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the answer that *make* gives to *http*, or gave to another who asked the same.

        Args:
            http: The request; of it path and query count.
            seen: What else the answer depends on: what has come in, who may see what.
            make: Makes it; the same for everybody.
        """

        async def compressed() -> tuple[Response, bytes]:
            found = await make()
            return found, gzip.compress(found.body, LEVEL, mtime=0)

        asked = http.scope["path"], http.scope["query_string"]  # `http.url` is made with the header Host
        key = *asked, seen, int(time.monotonic() / HOLDS)
        plain, packed = await self._made.get(key, compressed)
        taken = "gzip" in http.headers.get("Accept-Encoding", "")
        headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if taken else {})
        return Response(packed if taken else plain.body, plain.status_code, headers, plain.media_type)
