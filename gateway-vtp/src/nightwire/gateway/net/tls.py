"""TLS, where an address begins with ``tls://``: contexts for listening and for connecting."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from nightwire.schemas.serving import ServerTLS, TLSError, load_identity, trusting_context


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
    context = trusting_context(ssl.Purpose.SERVER_AUTH, settings.ca)
    if settings.certificate is not None:
        load_identity(context, settings.certificate, settings.key)
    return context


def server_tls(settings: TLSSettings) -> ServerTLS:
    """Return what listens with our certificate.

    Raises:
        TLSError: There is none, or it cannot be used.
    """
    if settings.certificate is None:
        raise TLSError("an address to listen on with tls:// needs --tls-cert FILE")
    return ServerTLS(settings.certificate, settings.key, settings.client_ca)
