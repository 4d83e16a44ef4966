"""The certificates of a site, in a folder that its operator alone can read."""

import os
import socket
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from cryptography import x509

from nightwire.core.runtime.credentials import write_private_file
from nightwire.core.tls.authority import (
    Identity,
    client_identity,
    hosts_of,
    new_authority,
    read_identity,
    server_identity,
)
from nightwire.schemas.topics import check_name

HERE = ("localhost", "127.0.0.1")
"""By what a server is reached from its own machine."""


class SiteError(ValueError):
    """The site's certificates cannot be used; the message says what to do."""


class Site:
    """The authority of one site, its server's certificate, and those of clients.

    Files: ``ca.pem`` is for everybody; ``ca.key.pem`` signs, and stays here; ``server.pem`` and
    ``NAME.client.pem`` hold a key and its certificate, so that both change at once.

    Args:
        folder: Where they are; made when first needed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca, self.server = folder / "ca.pem", folder / "server.pem"
        self._authority = folder / "ca.key.pem"

    def init(self, hosts: Sequence[str] = (), owner: int | None = None) -> list[str]:
        """Make a new certificate of the server, and before the first one the authority.

        Args:
            hosts: Names and addresses by which others reach it; without any those of the present
                certificate, else this machine's name.
            owner: User id of who reads the certificate and its key; without it who did so before.

        Returns:
            All names and addresses for which it holds.

        Raises:
            ValueError: One of *hosts* is no name and no address; or the authority is not readable.
        """
        wanted = list(hosts) or self.hosts() or [socket.gethostname()]
        every = list(dict.fromkeys([*wanted, *HERE]))
        self.make_authority()
        made = server_identity(self._present_authority(), every)
        if owner is not None:
            self.folder.chmod(0o711)  # to be entered, not to be listed
        elif self.server.exists():
            owner = self.server.stat().st_uid
        self._write(self.server, made, owner)
        return every

    def make_authority(self) -> None:
        """Make the authority, where there is none."""
        if self.ca.exists() or self._authority.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = new_authority(f"nightwire at {socket.gethostname()}")
        self._write(self._authority, made)
        fresh = self.ca.with_name(f"ca.pem.{os.getpid()}")
        fresh.write_bytes(made.public_pem())
        fresh.replace(self.ca)

    def add_client(self, name: str) -> Path:
        """Make a certificate by which *name* proves who it is; return its file.

        Raises:
            ValueError: It cannot be a name; or there is no authority yet.
        """
        check_name(name)
        path = self.folder / f"{name}.client.pem"
        self._write(path, client_identity(self._present_authority(), name))
        return path

    def hosts(self) -> list[str]:
        """Return for what the server's certificate holds; empty where there is none."""
        return hosts_of(read_certificate(self.server)) if self.server.exists() else []

    def ends(self) -> datetime:
        """Return until when the server's certificate holds.

        Raises:
            SiteError: There is none.
        """
        return read_certificate(self.server).not_valid_after_utc

    def _present_authority(self) -> Identity:
        try:
            return read_identity(self._authority.read_bytes())
        except FileNotFoundError as error:
            raise SiteError(f"{self.folder} has no authority: `nightwire tls init` makes it") from error
        except (OSError, ValueError) as error:
            raise SiteError(f"{self._authority} cannot be read: {error}") from error

    def _write(self, path: Path, identity: Identity, owner: int | None = None) -> None:
        write_private_file(path, (identity.private_pem() + identity.public_pem()).decode(), owner)


def read_certificate(path: Path) -> x509.Certificate:
    """Return the first certificate in *path*.

    Raises:
        SiteError: There is none.
    """
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SiteError(f"{path} holds no certificate (PEM): {error}") from error
