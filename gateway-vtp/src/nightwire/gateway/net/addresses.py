"""Addresses: a host and a port, and whether TLS is spoken there."""

from dataclasses import dataclass

TLS_SCHEME = "tls://"


@dataclass(frozen=True)
class Address:
    """A host and a port, and whether TLS is spoken there."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{TLS_SCHEME if self.tls else ''}{host}:{self.port}"


def read_address(text: str, default_port: int) -> Address:
    """Return the address *text*: ``HOST``, ``HOST:PORT``, ``[IPV6]:PORT``, with or without
    ``tls://``.

    Raises:
        ValueError: It is none of these.
    """
    place = text.removeprefix(TLS_SCHEME)
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        host, port = place, str(default_port)
    if not port.isdigit() or not 0 <= int(port) < 1 << 16 or not _can_be_asked_for(host):
        raise ValueError(f"{text!r} is no HOST:PORT")
    return Address(host.strip("[]"), int(port), place != text)


def _can_be_asked_for(host: str) -> bool:
    """Say whether *host* has a form that the name system knows; looking for another one raises."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False
