"""How many may come, and how much they may bring.  Pure; used from one event loop."""

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from nightwire.gateway.net.access import Access, address_of

FULL, CROWDED = "full", "address-full"
"""Why one more connection is refused: there are as many as may be, or as many from this address."""


@dataclass(frozen=True)
class Limits:
    """What one listening address bears.

    Attributes:
        connections: Most at once.
        per_address: Most at once from one address, or from one /64 of IPv6.
        frame_timeout: Longest time from the first byte of a message to its last, and for a TLS handshake. [s]
        last_bytes: Longest time that a peer may take over what is left to be sent when we hang up. [s]
    """

    connections: int = 4096
    per_address: int = 2048
    frame_timeout: float = 20.0
    last_bytes: float = 5.0


class ConnectionLimiter:
    """Say who may come in, and count who is there.

    Args:
        access: The networks that are let in.
        limits: How many at once.
    """

    def __init__(self, access: Access, limits: Limits) -> None:
        self.limits = limits
        self._access = access
        self._present: Counter[str] = Counter()
        self._number = 0

    def refusal(self, host: str) -> str | None:
        """Return why a peer at *host* may not come in now, or None."""
        if reason := self._access.refusal(host):
            return reason
        if self._number >= self.limits.connections:
            return FULL
        return CROWDED if self._present[_neighbourhood(host)] >= self.limits.per_address else None

    def enter(self, host: str) -> None:
        """Count a peer at *host* as present, from the moment when it was not refused."""
        self._present[_neighbourhood(host)] += 1
        self._number += 1

    def leave(self, host: str) -> None:
        """Note that it left."""
        home = _neighbourhood(host)
        self._number -= 1
        self._present[home] -= 1
        if not self._present[home]:
            del self._present[home]


class MemoryExceededError(Exception):
    """Incomplete frames fill the memory that is for them, and this peer holds more than its share."""


class MemoryBudget:
    """Bound what authors' events take of memory: frames that are incomplete, and events on their way.

    Args:
        limit: Most of each. [byte]
    """

    def __init__(self, limit: int = 256 << 20) -> None:
        self._limit = limit
        self._unfinished: dict[object, int] = {}
        self._unfinished_total = 0
        self._under_way = 0
        self._waiting: dict[Callable[[], None], int] = {}

    @property
    def held(self) -> int:
        """How much is held now. [byte]"""
        return self._unfinished_total + self._under_way

    def unfinished(self, peer: object, size: int) -> None:
        """Note that *peer* has sent *size* [byte] of a frame that is not complete; 0 as soon as none is.

        Raises:
            TooMuchUnfinishedError: All together is too much, and *peer* holds the average or more.
        """
        self._unfinished_total += size - self._unfinished.pop(peer, 0)
        if size:
            self._unfinished[peer] = size
        if self._unfinished_total > self._limit and size * len(self._unfinished) >= self._unfinished_total:
            raise MemoryExceededError(
                f"{self._unfinished_total} bytes of incomplete frames, the limit is {self._limit}"
            )

    def has_room(self, size: int) -> bool:
        """Say whether an event of *size* [byte] may be begun with; one that is too large goes alone."""
        return not self._under_way or self._under_way + size <= self._limit

    def enter(self, size: int) -> None:
        """Note that an event of *size* [byte] is being dealt with."""
        self._under_way += size

    def leave(self, size: int) -> None:
        """Note that it is no longer, and wake who waits for room."""
        self._under_way -= size
        while self._waiting:
            wake, wanted = next(iter(self._waiting.items()))
            if not self.has_room(wanted):
                return
            del self._waiting[wake]
            wake()

    def wait(self, size: int, wake: Callable[[], None]) -> None:
        """Call *wake*, once, when there is room for *size* [byte], after those who wait already."""
        self._waiting[wake] = size


@lru_cache(maxsize=4096)
def _neighbourhood(host: str) -> str:
    """Return what *host* is counted as: an IPv4 address, or the network that one IPv6 line has."""
    address = address_of(host)
    if address is None:
        return host
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))
