"""What a stack shows to other machines: its name there, and the certificate for that name."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ANYWHERE = "0.0.0.0"  # noqa: S104  (who comes by TLS is asked who he is)
"""Where public doors listen."""


@dataclass(frozen=True)
class Public:
    """The public side of a stack.

    Attributes:
        host: Name or address by which other machines reach this one.
        certificate: Its certificate, with the chain behind it (PEM).
        key: The private key (PEM).
        client_ca: Who signs the certificates of clients that are asked for one.
        ca: Who signed the certificate, where clients have to be told; None: one that they trust.
    """

    host: str
    certificate: Path
    key: Path
    client_ca: Path
    ca: Path | None = None

    def as_json(self) -> dict[str, str | None]:
        """Return it as the state file keeps it."""
        return {name: str(value) if value else None for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, kept: Mapping[str, str | None]) -> "Public":
        """Return what `as_json` kept."""
        files = {name: Path(value) if value else None for name, value in kept.items() if name != "host"}
        return cls(host=str(kept["host"]), **files)  # type: ignore[arg-type]


def public_side(
    folder: Path, host: str = "", certificate: Path | None = None, key: Path | None = None
) -> Public:
    """Return the public side that is asked for; make the site's certificates where they are needed.

    Args:
        folder: Of the site's certificates.
        host: What others call this machine; else the first name of the certificate.
        certificate: Another authority's; else the site's own is used.
        key: Its private key; else in the file of the certificate.

    Raises:
        ValueError: *host* is no name of a machine; or *certificate* cannot be used.
    """
    from nightwire.core.tls.authority import hosts_of  # cryptography is not wherever a stack is known
    from nightwire.core.tls.site import Site, read_certificate

    site = Site(folder)
    site.make_authority()
    if certificate is not None:
        host = host or hosts_of(read_certificate(certificate))[0]
        # as they are named: Let's Encrypt's are links, which a renewal leads elsewhere
        return Public(host, certificate.absolute(), (key or certificate).absolute(), site.ca)
    if not site.server.exists() or (host and host not in site.hosts()):
        site.init([*([host] if host else []), *site.hosts()])
    return Public(host or site.hosts()[0], site.server, site.server, site.ca, site.ca)
