"""Who a subscriber is: a name is what it calls itself, an owner what it proved.  Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nightwire.gateway.net.limits import counted_as
from nightwire.gateway.signing.trust_policy import Signer


class Peer(NamedTuple):
    """Whose position a position is.

    Attributes:
        feed: Name of the feed.
        name: IVOID of the subscriber, or its address where it gave none: anybody may say it.
        owner: What stands behind the name; empty in records of before there were owners.
    """

    feed: str
    name: str
    owner: str = ""

    @property
    def key(self) -> bytes:
        """Its key in Kafka; no name holds a byte 0, for XML has none."""
        return f"{self.feed}/{self.name}{self.owner and chr(0)}{self.owner}".encode()


def read_peer(key: bytes) -> Peer:
    """Return the peer of a key in Kafka."""
    feed, _, rest = key.decode(errors="replace").partition("/")
    name, _, owner = rest.partition("\0")
    return Peer(feed, name, owner)


def owner_of(signer: Signer | None, certificate: Mapping[str, Any] | None, host: str) -> str:
    """Return what stands behind a name: a key, else a certificate, else the address *host*.

    Args:
        signer: Who signed its answer to our greeting.
        certificate: What `ssl.SSLSocket.getpeercert` says of one that was verified.  Its subject
            counts, which a renewed one keeps.
        host: Its address; one /64 of IPv6 is one.
    """
    if signer is not None:
        return f"key {signer.fingerprint}"
    if certificate and (subject := _subject(certificate)):
        return f"certificate {subject}"
    return counted_as(host)


def _subject(certificate: Mapping[str, Any]) -> str:
    named = [pair for part in certificate.get("subject", ()) for pair in part]
    return ", ".join(f"{key}={value}" for key, value in named or certificate.get("subjectAltName", ()))
