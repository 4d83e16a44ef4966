"""The limit of each client's requests."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from nightwire.schemas.serving import RefusedError, source_of

MAX_SOURCES = 10_000
"""Most clients whose rates are remembered."""
EXPENSIVE, COST = re.compile(r"/(api/)?(curve|find|finder|moc|sky|static/vendor/aladin)\b"), 10
"""Paths whose answers take 20 to 100 ms of CPU, and how many requests one of them counts as."""


def address_of(http: Request) -> str:
    """Return the client's IP address; empty where none is known."""
    return http.client.host if http.client else ""


@dataclass
class RateLimiter:
    """A token bucket for each `source_of`; a page with a hundred stamps fits in at once.

    Attributes:
        rate: Requests of one client, on the average. [1/s]
        burst: Its requests at once.
        clock: Gives the time. [s, any steady clock]
    """

    rate: float = 60.0
    burst: float = 600.0
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def check(self, http: Request) -> None:
        """Take a token from the client's bucket, or as many as an `EXPENSIVE` answer costs.

        Raises:
            RefusedError: 429: it has not so many.
        """
        source, now = source_of(address_of(http)), self.clock()
        cost = COST if EXPENSIVE.match(http.scope["path"]) else 1
        left, since = self._left.pop(source, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate) - cost
        self._left[source] = (left if left >= 0 else left + cost), now
        if len(self._left) > MAX_SOURCES:
            self._left.popitem(last=False)
        if left < 0:
            raise RefusedError(429, "too many requests from this address; wait a few seconds")
