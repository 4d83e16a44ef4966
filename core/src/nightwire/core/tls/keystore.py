"""The one file of key and certificates that Kafka reads, made anew when its sources change."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from nightwire.core.runtime.credentials import write_private_file
from nightwire.core.tls.site import SiteError, read_certificate


class Keystore:
    """A file that follows a certificate and its key.

    Args:
        path: The file.
        certificate: The certificate and its chain (PEM).
        key: The private key (PEM); it may be in the same file.
    """

    def __init__(self, path: Path, certificate: Path, key: Path) -> None:
        self.path = path
        self._sources = (certificate, key)
        self._written: Sequence[int] = ()

    def refresh(self) -> bool:
        """Write the file where its sources changed; return whether it was written.

        Raises:
            SiteError: They cannot be used as they are; what was written before stays.
        """
        if (ages := self._ages()) == self._written:
            return False
        write_private_file(self.path, key_and_chain(*self._sources).decode())
        self._written = ages
        return True

    def forget(self) -> None:
        """Write it at the next `refresh`, whatever its sources."""
        self._written = ()

    def left(self) -> timedelta:
        """Return for how long the certificate that was written last still holds."""
        return read_certificate(self.path).not_valid_after_utc - datetime.now(UTC)

    def _ages(self) -> list[int]:
        try:
            return [source.stat().st_mtime_ns for source in self._sources]
        except OSError as error:
            raise SiteError(f"{error.filename} cannot be read: {error.strerror}") from error


def key_and_chain(certificate: Path, key: Path) -> bytes:
    """Return key and certificates in one PEM, as Kafka reads it.

    Raises:
        SiteError: They cannot be read, or do not belong together; the message says which.
    """
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
        chain = x509.load_pem_x509_certificates(certificate.read_bytes())
    except (OSError, ValueError, TypeError) as error:  # TypeError: the key has a password
        raise SiteError(f"{certificate} and {key} cannot be used: {error}") from error
    if chain[0].public_key() != private.public_key():
        raise SiteError(f"the key in {key} is not that of the certificate in {certificate}")
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    parts = [private.private_bytes(pem, pkcs8, serialization.NoEncryption())]
    return b"".join([*parts, *(one.public_bytes(pem) for one in chain)])
