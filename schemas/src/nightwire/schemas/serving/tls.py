"""TLS of a server: its certificate, read again when it is renewed."""

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path

from nightwire.schemas.errors import MendableError

log = logging.getLogger(__name__)


class TLSError(MendableError):
    """A certificate or key cannot be used; the message says which."""


class ServerTLS:
    """The context for connections from peers; a renewed certificate is used from the next one on.

    Args:
        certificate: Ours, with the chain behind it (PEM).
        key: Its private key, without a password; None: it is in the same file.
        client_ca: Who must have signed the certificates of those who call us; None: they need none.

    Raises:
        TLSError: A file cannot be used.
    """

    def __init__(self, certificate: Path, key: Path | None = None, client_ca: Path | None = None) -> None:
        self._files, self._client_ca = (certificate, key), client_ca
        self._loaded = self._ages()
        self._context = self._made()

    def context(self) -> ssl.SSLContext:
        """Return the context to use now.

        Files that changed and cannot be used are logged, once; those before stay in use.
        """
        if (ages := self._ages()) != self._loaded:
            self._loaded = ages
            try:
                self._context = self._made()
            except TLSError as error:
                log.warning("going on with the certificate that was there before: %s", error)
        return self._context

    def following_context(self) -> ssl.SSLContext:
        """Return a context for a server that takes one for good: it turns to `context` by itself,
        at each greeting.
        """

        def turn(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = self.context()

        entrance = self._made()
        entrance.sni_callback = turn
        return entrance

    def _made(self) -> ssl.SSLContext:
        context = trusting_context(ssl.Purpose.CLIENT_AUTH, self._client_ca)
        if self._client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
        load_identity(context, *self._files)
        return context

    def _ages(self) -> Sequence[int]:
        try:
            return [path.stat().st_mtime_ns for path in self._files if path is not None]
        except OSError:  # being replaced; what is loaded still serves
            return getattr(self, "_loaded", ())


def trusting_context(purpose: ssl.Purpose, ca: Path | None) -> ssl.SSLContext:
    """Return a context that believes *ca*; None: whom the machine believes.

    Raises:
        TLSError: *ca* holds no certificates.
    """
    try:
        return ssl.create_default_context(purpose, cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise TLSError(f"{ca} holds no certificates of authorities: {error}") from error


def load_identity(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    """Let *context* show *certificate*.

    Raises:
        TLSError: It cannot be used, or *key* is not its key, or has a password.
    """
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ssl.SSLError) as error:
        raise TLSError(f"{certificate} and {key or 'its key'} cannot be used: {error}") from error


def _no_password() -> str:
    raise TLSError("the private key has a password; take it off, and let nobody else read the file")
