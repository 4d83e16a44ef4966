"""How many connections may be open, and what one may send unasked.  For one event loop."""

import ipaddress
from collections import Counter, OrderedDict
from dataclasses import dataclass
from functools import lru_cache

from nightwire.gateway.net.access import Access, address_of

FULL, CROWDED = "full", "address-full"
"""Why one more connection is refused: as many as may be are open, or as many from this address."""

UNASKED_RATE, UNASKED_BURST = 8 << 10, 128 << 10
"""What a peer may send that nobody asked for: in a second, and at once. [byte]"""
ADDRESS_RATE, ADDRESS_BURST = 64 << 10, 4 << 20
"""The same of all connections from one address: a peer may come again and again. [byte]"""
MAX_ADDRESSES = 4096
"""Most addresses that are remembered."""


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
        self._refusal = lru_cache(maxsize=MAX_ADDRESSES)(access.refusal)
        self._open: Counter[str] = Counter()
        self._total = 0

    def refusal(self, host: str) -> str | None:
        """Return why a peer at *host* may not connect now, or None."""
        if reason := self._refusal(host):
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
        shared: What all peers at its address have together.
    """

    def __init__(
        self,
        rate: float = UNASKED_RATE,
        burst: float = UNASKED_BURST,
        shared: "TokenBucket | None" = None,
    ) -> None:
        self._rate, self._burst, self._shared = rate, burst, shared
        self._left, self._at = burst, 0.0

    def take(self, size: int, now: float) -> None:
        """Take *size* [byte] at *now*, a time that only goes forward. [s]

        Raises:
            FloodError: There is not so much left.
        """
        self._left = min(self._burst, self._left + self._rate * (now - self._at))
        self._at = now
        if size > self._left:
            raise FloodError(f"more than {self._rate} bytes a second come that nobody asked for")
        if self._shared is not None:
            self._shared.take(size, now)
        self._left -= size


class UnaskedLimiter:
    """Give each connection a bucket, and all connections from one address one that they share."""

    def __init__(self) -> None:
        self._shared: OrderedDict[str, TokenBucket] = OrderedDict()

    def bucket(self, host: str) -> TokenBucket:
        """Return the bucket of a new connection from *host*."""
        address = counted_as(host)
        shared = self._shared.setdefault(address, TokenBucket(ADDRESS_RATE, ADDRESS_BURST))
        self._shared.move_to_end(address)
        if len(self._shared) > MAX_ADDRESSES:
            self._shared.popitem(last=False)
        return TokenBucket(shared=shared)


@lru_cache(maxsize=4096)
def counted_as(host: str) -> str:
    """Return what *host* is counted as: an IPv4 address, or the /64 that one IPv6 line has."""
    address = address_of(host)
    if address is None:
        return host
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))
