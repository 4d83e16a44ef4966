"""How many connections may be open, what one may send unasked, and how much memory events may take.

For one event loop.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from nightwire.gateway.net.access import Access, address_of

FULL, CROWDED = "full", "address-full"
"""Why one more connection is refused: as many as may be are open, or as many from this address."""

UNASKED_RATE, UNASKED_BURST = 8 << 10, 128 << 10
"""What a peer may send that nobody asked for: in a second, and at once. [byte]"""


@dataclass(frozen=True)
class Limits:
    """The limits of one listening address.

    Attributes:
        connections: Most at once.
        per_address: Most at once from one address, or from one /64 of IPv6.
        frame_timeout: Longest time from the first byte of a message to its last, and for a TLS
            handshake. [s]
        last_bytes: Longest time that a peer may take over what is left when we hang up. [s]
    """

    connections: int = 4096
    per_address: int = 2048
    frame_timeout: float = 20.0
    last_bytes: float = 5.0


class ConnectionLimiter:
    """Decide who may connect, and count open connections.

    Args:
        access: The networks that are let in.
        limits: How many at once.
    """

    def __init__(self, access: Access, limits: Limits) -> None:
        self.limits = limits
        self._access = access
        self._open: Counter[str] = Counter()
        self._total = 0

    def refusal(self, host: str) -> str | None:
        """Return why a peer at *host* may not connect now, or None."""
        if reason := self._access.refusal(host):
            return reason
        if self._total >= self.limits.connections:
            return FULL
        return CROWDED if self._open[counted_as(host)] >= self.limits.per_address else None

    def opened(self, host: str) -> None:
        """Count a connection from *host*, from the moment when it was not refused."""
        self._open[counted_as(host)] += 1
        self._total += 1

    def closed(self, host: str) -> None:
        """Note that a connection from *host* is closed."""
        key = counted_as(host)
        self._total -= 1
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]


class FloodError(Exception):
    """A peer sends what nobody asked for, faster than it may."""


class TokenBucket:
    """Bound what one peer sends unasked: so much at once, and so much a second.

    Args:
        rate: What comes back in a second. [byte]
        burst: Most at once. [byte]
    """

    def __init__(self, rate: float = UNASKED_RATE, burst: float = UNASKED_BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, 0.0

    def take(self, size: int, now: float) -> None:
        """Take *size* [byte] at *now*, a time that only goes forward. [s]

        Raises:
            FloodError: There is not so much left.
        """
        self._left = min(self._burst, self._left + self._rate * (now - self._at)) - size
        self._at = now
        if self._left < 0:
            raise FloodError(f"it sends more than {self._rate} bytes a second that nobody asked for")


class MemoryExceededError(Exception):
    """Incomplete frames fill the memory for them, and this peer holds more than its share."""


class MemoryBudget:
    """Bound the memory of authors' events: incomplete frames, and events on their way to Kafka.

    Args:
        limit: Most of each. [byte]
    """

    def __init__(self, limit: int = 256 << 20) -> None:
        self._limit = limit
        self._incomplete: dict[object, int] = {}
        self._incomplete_total = 0
        self._reserved = 0
        self._waiting: dict[Callable[[], None], int] = {}

    @property
    def held(self) -> int:
        """How much is held now. [byte]"""
        return self._incomplete_total + self._reserved

    def hold_incomplete(self, peer: object, size: int) -> None:
        """Note that *peer* has sent *size* [byte] of an incomplete frame; 0 where none is.

        Raises:
            MemoryExceededError: All together is too much, and *peer* holds the average or more.
        """
        self._incomplete_total += size - self._incomplete.pop(peer, 0)
        if size:
            self._incomplete[peer] = size
        if self._incomplete_total > self._limit and size * len(self._incomplete) >= self._incomplete_total:
            raise MemoryExceededError(
                f"{self._incomplete_total} bytes of incomplete frames, the limit is {self._limit}"
            )

    def has_room(self, size: int) -> bool:
        """Say whether an event of *size* [byte] may begin; one that is too large goes alone."""
        return not self._reserved or self._reserved + size <= self._limit

    def reserve(self, size: int) -> None:
        """Note that an event of *size* [byte] is on its way."""
        self._reserved += size

    def release(self, size: int) -> None:
        """Note that it is no longer, and call those who wait for room."""
        self._reserved -= size
        while self._waiting:
            callback, wanted = next(iter(self._waiting.items()))
            if not self.has_room(wanted):
                return
            del self._waiting[callback]
            callback()

    def when_room(self, size: int, callback: Callable[[], None]) -> None:
        """Call *callback*, once, when there is room for *size* [byte], after earlier ones."""
        self._waiting[callback] = size


@lru_cache(maxsize=4096)
def counted_as(host: str) -> str:
    """Return what *host* is counted as: an IPv4 address, or the /64 that one IPv6 line has."""
    address = address_of(host)
    if address is None:
        return host
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))
