"""Where requests may go: a host is resolved once, checked, and connected to at that address.

Whoever may write a URL could else make a process of ours ask what only its own network may ask
(server-side request forgery).  Redirects are not followed for the same reason.
"""

import ipaddress
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import httpx

EMBEDDING = [
    ipaddress.IPv6Network(one) for one in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")
]
"""Networks whose addresses end with one of IPv4, to which a translator leads (NAT64, SIIT)."""


class Unavailable(Exception):  # noqa: N818  (the state of who is asked, said)
    """Not now: asking again may help."""


class Refused(Exception):  # noqa: N818
    """Never: asking again does not help."""


@dataclass(frozen=True)
class PinnedUrl:
    """A URL and the address that its host has.

    Attributes:
        url: The URL, as it was given.
        address: Where to connect to.
    """

    url: httpx.URL
    address: str

    def request(self, body: bytes, headers: Mapping[str, str], method: str = "POST") -> httpx.Request:
        """Return a request with *body* to the address, with the host's own name in it."""
        port = f":{self.url.port}" if self.url.port else ""
        literal = f"[{self.address}]" if ":" in self.address else self.address
        return httpx.Request(
            method,
            self.url.copy_with(host=literal),
            headers={"host": f"{self.url.host}{port}", **headers},
            content=body,
            extensions={"sni_hostname": self.url.host},
        )


def pin_url(url: str, *, allow_private: bool) -> PinnedUrl:
    """Return *url* with an address of its host.

    Args:
        url: ``https://HOST…`` or ``http://HOST…``.
        allow_private: Whether addresses of private networks and of this machine are allowed.

    Raises:
        Refused: It is no such URL, or leads to such an address.
        Unavailable: Its host is not known just now.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Refused(f"{url[:80]!r} is no URL: {error}") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.userinfo:
        raise Refused(f"{url[:80]!r} is no http or https URL without a password")
    default = 443 if parsed.scheme == "https" else 80
    return PinnedUrl(parsed, resolve_public(parsed.host, parsed.port or default, allow_private=allow_private))


def resolve_public(host: str, port: int, *, allow_private: bool) -> str:
    """Return an address of *host*.

    Raises:
        Refused: It has a private one, which is not allowed.
        Unavailable: It is not known just now.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"{host} has no address: {error}") from error
    addresses = [str(one[4][0]) for one in found]
    if not allow_private and (bad := next(_private(addresses), None)):
        raise Refused(f"{host} is {bad}, an address inside: refused unless the operator allows it")
    return addresses[0]


def _private(addresses: Iterable[str]) -> Iterator[str]:
    """Yield those of *addresses* that are not the Internet's."""
    for text in addresses:
        address = ipaddress.ip_address(text.partition("%")[0])
        inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
        if isinstance(address, ipaddress.IPv6Address) and any(address in one for one in EMBEDDING):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        old = getattr(address, "is_site_local", False)
        if not (address.is_global and inner.is_global) or address.is_multicast or old:
            yield text
