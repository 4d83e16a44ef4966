"""Who may connect."""

import ipaddress
from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOCAL = ("127.0.0.0/8", "::1/128")
"""This machine only."""


class AccessList:
    """Networks in CIDR notation, of which an address must lie in one.

    Raises:
        ValueError: One is no network.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: list[Network] = [ipaddress.ip_network(text) for text in networks]

    def admits(self, address: str) -> bool:
        """Say whether a peer at *address* may connect."""
        try:
            peer = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._networks if network.version == peer.version)
