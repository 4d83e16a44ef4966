"""Clients of Kafka that are kept from one request to the next, and closed when nobody asks."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, Protocol, TypeVar

import anyio

from nightwire.schemas.serving import RefusedError

IDLE = 60.0
"""How long a client is kept that nobody uses. [s]"""
LOOK = 5.0
"""Time between two looks for such. [s]"""


Result = TypeVar("Result")

THREADS = anyio.CapacityLimiter(256)
"""Threads of those who wait for Kafka; others, who ask the directory, have their own."""


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return what *work* returns, done in a thread."""
    return await anyio.to_thread.run_sync(work, limiter=THREADS)


class Client(Protocol):
    """What is kept: it says when it was last used [s, `time.monotonic`], and can be closed."""

    used: float

    def close(self) -> None:
        """Leave Kafka.  Blocks."""


class Key(NamedTuple):
    """Whose client it is, and for what."""

    user: bytes | str
    topic: str = ""
    group: str = ""
    member: str = ""
    slow: str = ""


Kept = TypeVar("Kept", bound=Client)


class Pool(Generic[Kept]):
    """Clients by their key, of one event loop; all are closed when that ends.

    Args:
        most: Most clients in all.
        most_of_one: Most of one user.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._kept: dict[Key, asyncio.Future[Kept]] = {}
        self._closing: set[asyncio.Future[None]] = set()
        self._cleaning: asyncio.Task[None] | None = None

    async def get(self, key: Key, make: Callable[[], Kept]) -> Kept:
        """Return the client of *key*, made in a thread where there is none yet.

        Raises:
            RefusedError: 429: there are too many; or what *make* raises.
        """
        if key not in self._kept:
            self._check_room(key)
            self._kept[key] = asyncio.ensure_future(in_thread(make))
            self._kept[key].add_done_callback(lambda made: self._forget_failed(key, made))
        if self._cleaning is None:
            self._cleaning = asyncio.create_task(self._clean())
        return await asyncio.shield(self._kept[key])

    def there(self, key: Key) -> Kept | None:
        """Return the client of *key*, if it is there."""
        made = self._kept.get(key)
        return made.result() if made is not None and made.done() else None

    def share(self, whole: int) -> int:
        """Return the share that each client has of *whole*."""
        return whole // max(1, len(self._kept))

    def drop(self, key: Key) -> None:
        """Close the client of *key*, if it is there; nobody waits for it."""
        if (kept := self.there(key)) is not None:
            del self._kept[key]
            closing = asyncio.ensure_future(in_thread(kept.close))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _check_room(self, key: Key) -> None:
        if len(self._kept) >= self._most:
            raise RefusedError(429, f"{self._most} clients are open here: come back in a minute")
        if sum(one.user == key.user for one in self._kept) >= self._most_of_one:
            kept = f"one that nobody uses is closed after {IDLE:g} s"
            raise RefusedError(429, f"{self._most_of_one} clients of yours are open: {kept}")

    def _forget_failed(self, key: Key, made: "asyncio.Future[Kept]") -> None:
        if (made.cancelled() or made.exception()) and self._kept.get(key) is made:
            del self._kept[key]

    async def _clean(self) -> None:
        try:
            while True:
                await asyncio.sleep(LOOK)
                then = time.monotonic() - IDLE
                for key, made in list(self._kept.items()):
                    if made.done() and made.result().used < then:
                        self.drop(key)
        finally:
            made_ones = [made for made in self._kept.values() if made.done() and not made.cancelled()]
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(lambda made: made.result().close(), made_ones))
