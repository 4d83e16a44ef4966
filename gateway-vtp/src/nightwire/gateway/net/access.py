"""Who may connect: networks that are allowed, and networks in these that are denied."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from nightwire.gateway.net.addresses import Address

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

LOCAL = ("127.0.0.0/8", "::1/128")
"""This machine only."""
ANYWHERE = ("0.0.0.0/0", "::/0")
"""Every machine."""
ADDRESS, DENIED = "address", "denied"
"""Why a peer is refused: its address is in no allowed network, or in a denied one."""


@dataclass(frozen=True)
class Access:
    """Networks in CIDR notation.

    Attributes:
        allow: An address must lie in one of these,
        deny: and in none of these.

    Raises:
        ValueError: One is no network.
    """

    allow: tuple[str, ...] = LOCAL
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._networks  # noqa: B018  (read now, so that a wrong one is said at the start)

    def refusal(self, address: str) -> str | None:
        """Return why a peer at *address* may not connect (`ADDRESS`, `DENIED`), or None."""
        allow, deny = self._networks
        peer = address_of(address)
        if peer is None:
            return ADDRESS
        if _lies_in(peer, deny):
            return DENIED
        return None if _lies_in(peer, allow) else ADDRESS

    @cached_property
    def _networks(self) -> tuple[list[IPNetwork], list[IPNetwork]]:
        return _read(self.allow), _read(self.deny)


@dataclass(frozen=True)
class Door:
    """A second address to listen on, beside the usual one.

    Attributes:
        address: Where.
        access: Who may connect.
    """

    address: Address
    access: Access = field(default_factory=Access)


@lru_cache(maxsize=4096)
def address_of(host: str) -> IPAddress | None:
    """Return the address that *host* is, IPv4 in IPv6 as IPv4; None where it is none.

    Authors come again for each event.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _read(texts: Iterable[str]) -> list[IPNetwork]:
    return [ipaddress.ip_network(text) for text in texts]


def _lies_in(peer: IPAddress, networks: Iterable[IPNetwork]) -> bool:
    return any(peer in network for network in networks if network.version == peer.version)
