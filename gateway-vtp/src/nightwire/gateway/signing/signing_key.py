"""Signing documents with an OpenPGP key of our own."""

from datetime import UTC, datetime
from pathlib import Path

from pysequoia import PySigner, SignatureMode, Tsk, sign

from nightwire.gateway.signing.bundled_signatures import bundle
from nightwire.gateway.signing.keyring import first_line
from nightwire.gateway.voevent.packet import element_bytes
from nightwire.gateway.voevent.xml import XMLRefusedError, parse_xml
from nightwire.schemas import MendableError

PASSWORD_VARIABLE = "NIGHTWIRE_SIGN_PASSWORD"  # noqa: S105  (a variable's name)


class SigningError(MendableError):
    """A key cannot sign, or a document cannot be signed; the message says why."""


class SigningKey:
    """A secret key.

    Args:
        path: Its file, as ``gpg --export-secret-keys`` writes it.
        password: Of the key; None where it has none.
        now: The time of day.
    """

    def __init__(self, path: Path, password: str | None, now: datetime) -> None:
        try:
            key = Tsk.from_bytes(path.read_bytes())
        except OSError as error:
            raise SigningError(f"{path} cannot be read: {error.strerror}") from error
        except Exception as error:
            raise SigningError(f"{path} holds no secret OpenPGP key: {first_line(error)}") from error
        cert = key.extract_certificate()
        if cert.is_revoked:
            raise SigningError(f"the key in {path} is revoked")
        if cert.expiration is not None and cert.expiration <= now:
            raise SigningError(f"the key in {path} expired {cert.expiration}")
        self._signer = _signer(key, password, path)
        self.names = tuple(str(name) for name in cert.user_ids)
        self.fingerprint = cert.fingerprint

    def sign(self, document: bytes) -> bytes:
        """Return *document* with a signature of its root element.

        Raises:
            SigningError: It is no XML that can be signed.
        """
        try:
            parse_xml(document)
        except XMLRefusedError as error:
            raise SigningError(f"cannot be signed: {error}") from error
        element = element_bytes(document)
        if b"\x00" in element:
            raise SigningError("cannot be signed in UTF-16: write it in UTF-8")
        armor: bytes = sign(self._signer, element, mode=SignatureMode.DETACHED)
        return bundle(document, armor)


def open_signing_key(path: Path, password: str | None) -> SigningKey:
    """Return the key in *path*, as it is today.

    Raises:
        SigningError: It cannot sign.
    """
    return SigningKey(path, password, datetime.now(UTC))


def _signer(key: Tsk, password: str | None, path: Path) -> PySigner:
    try:
        return key.signer(password)
    except Exception as error:
        advice = "" if password else f" (is it a secret key? its password belongs in {PASSWORD_VARIABLE})"
        raise SigningError(f"the key in {path} cannot sign: {first_line(error)}{advice}") from error
