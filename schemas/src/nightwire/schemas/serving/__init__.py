"""What servers of nightwire share: small pages, and TLS whose certificate may be renewed."""

from nightwire.schemas.serving.tls import ServerTLS, TLSError, load_identity, trusting_context
from nightwire.schemas.serving.wsgi import serve_wsgi

__all__ = ["ServerTLS", "TLSError", "load_identity", "serve_wsgi", "trusting_context"]
