"""Kafka clients that requests share, closed when they are idle."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, Protocol, TypeVar

import anyio

from nightwire.schemas.serving import RefusedError

IDLE_TIMEOUT = 60.0
"""How long an idle client stays open. [s]"""
CLEAN_INTERVAL = 5.0
"""Time between two searches for idle clients. [s]"""


Result = TypeVar("Result")

THREADS = anyio.CapacityLimiter(256)
"""Threads that wait for Kafka; the directory's queries have others."""


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return what *work* returns, done in a thread."""
    return await anyio.to_thread.run_sync(work, limiter=THREADS)


class KafkaClient(Protocol):
    """A client of the pool, and when it was last used. [s, `time.monotonic`]"""

    last_used: float

    def close(self) -> None:
        """Close the connection.  Blocks."""


class Key(NamedTuple):
    """The user of a client, and its purpose."""

    user: bytes | str
    topic: str = ""
    group: str = ""
    member: str = ""
    slow: str = ""


ClientT = TypeVar("ClientT", bound=KafkaClient)


class ClientPool(Generic[ClientT]):
    """Clients by their key, of one event loop; all are closed when that ends.

    Args:
        max_clients: Most clients in all.
        max_per_user: Most of one user.
    """

    def __init__(self, max_clients: int, max_per_user: int) -> None:
        self._max_clients, self._max_per_user = max_clients, max_per_user
        self._clients: dict[Key, asyncio.Future[ClientT]] = {}
        self._closing: set[asyncio.Future[None]] = set()
        self._cleaning: asyncio.Task[None] | None = None

    async def get(self, key: Key, make: Callable[[], ClientT]) -> ClientT:
        """Return the client of *key*, made in a thread where there is none yet.

        Raises:
            RefusedError: 429: there are too many clients; or what *make* raises.
        """
        if key not in self._clients:
            self._check_room(key)
            self._clients[key] = asyncio.ensure_future(in_thread(make))
            self._clients[key].add_done_callback(lambda made: self._forget_failed(key, made))
        if self._cleaning is None:
            self._cleaning = asyncio.create_task(self._clean())
        return await asyncio.shield(self._clients[key])

    def existing(self, key: Key) -> ClientT | None:
        """Return the client of *key*, if it is open."""
        made = self._clients.get(key)
        return made.result() if made is not None and made.done() else None

    def share(self, whole: int) -> int:
        """Return each client's share of *whole*."""
        return whole // max(1, len(self._clients))

    def drop(self, key: Key) -> None:
        """Close the client of *key*, if it is open, in a thread."""
        if (client := self.existing(key)) is not None:
            del self._clients[key]
            closing = asyncio.ensure_future(in_thread(client.close))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _check_room(self, key: Key) -> None:
        if len(self._clients) >= self._max_clients:
            raise RefusedError(429, f"{self._max_clients} clients are open here: come back in a minute")
        if sum(one.user == key.user for one in self._clients) >= self._max_per_user:
            hint = f"one that nobody uses is closed after {IDLE_TIMEOUT:g} s"
            raise RefusedError(429, f"{self._max_per_user} clients of yours are open: {hint}")

    def _forget_failed(self, key: Key, made: "asyncio.Future[ClientT]") -> None:
        if (made.cancelled() or made.exception()) and self._clients.get(key) is made:
            del self._clients[key]

    async def _clean(self) -> None:
        try:
            while True:
                await asyncio.sleep(CLEAN_INTERVAL)
                then = time.monotonic() - IDLE_TIMEOUT
                for key, made in list(self._clients.items()):
                    if made.done() and made.result().last_used < then:
                        self.drop(key)
        finally:
            ready = [made for made in self._clients.values() if made.done() and not made.cancelled()]
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(lambda made: made.result().close(), ready))
