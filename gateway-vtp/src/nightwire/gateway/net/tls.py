"""TLS, where an address begins with ``tls://``: contexts for listening and for connecting."""

import ssl
from dataclasses import dataclass
from pathlib import Path


class TLSError(ValueError):
    """A certificate or key cannot be used; the message says which."""


@dataclass(frozen=True)
class TLSSettings:
    """Files in PEM.

    Attributes:
        certificate: Ours, with the chain behind it; shown to who calls us, and to whom we call.
        key: Its private key, without a password.
        ca: Who may have signed the certificates of those whom we call; None: whom the machine
            trusts.
        client_ca: Who must have signed the certificates of those who call us; None: they need none.
    """

    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    client_ca: Path | None = None


def client_context(settings: TLSSettings) -> ssl.SSLContext:
    """Return the context for connections that we open.

    Raises:
        TLSError: A file cannot be used.
    """
    context = _made(ssl.Purpose.SERVER_AUTH, settings.ca)
    if settings.certificate is not None:
        _load(context, settings.certificate, settings.key)
    return context


class ServerTLS:
    """The context for connections from peers; a renewed certificate is used from the next one on.

    Args:
        settings: The files.

    Raises:
        TLSError: One of them cannot be used.
    """

    def __init__(self, settings: TLSSettings) -> None:
        if settings.certificate is None:
            raise TLSError("an address to listen on with tls:// needs --tls-cert FILE")
        self._certificate, self._key = settings.certificate, settings.key
        self._context = _made(ssl.Purpose.CLIENT_AUTH, settings.client_ca)
        if settings.client_ca is not None:
            self._context.verify_mode = ssl.CERT_REQUIRED
        _load(self._context, self._certificate, self._key)
        self._loaded = self._age()

    def context(self) -> ssl.SSLContext:
        """Return the context to use now.

        Raises:
            TLSError: The files changed, and cannot be used as they are.
        """
        if (age := self._age()) != self._loaded:
            _load(self._context, self._certificate, self._key)
            self._loaded = age
        return self._context

    def _age(self) -> list[int]:
        try:
            return [path.stat().st_mtime_ns for path in (self._certificate, self._key) if path is not None]
        except OSError:  # being replaced; what is loaded still serves
            return self._loaded


def _made(purpose: ssl.Purpose, ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(purpose, cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise TLSError(f"{ca} holds no certificates of authorities: {error}") from error


def _load(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ssl.SSLError) as error:
        raise TLSError(f"{certificate} and {key or 'its key'} cannot be used: {error}") from error


def _no_password() -> str:
    raise TLSError("the private key has a password; take it off, and let nobody else read the file")
