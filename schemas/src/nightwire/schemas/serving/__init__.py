"""What servers of nightwire share: small pages, HTTP and HTTPS, certificates, and who asks."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.schemas.serving.kafka_access import KafkaAccess, KafkaSilentError, NotLetInError
    from nightwire.schemas.serving.listeners import (
        TLSDoor,
        hung_up,
        plain_server,
        run,
        tls_door,
        tls_server,
    )
    from nightwire.schemas.serving.logins import Login, Token, login_of
    from nightwire.schemas.serving.permission import answered, asking, may
    from nightwire.schemas.serving.requests import RefusedError, body_of, object_of, refusal
    from nightwire.schemas.serving.tls import ServerTLS, TLSError, load_identity, trusting_context
    from nightwire.schemas.serving.tries import TRIES, WINDOW, Tries, source_of
    from nightwire.schemas.serving.wsgi import serve_wsgi

__all__ = [
    "TRIES",
    "WINDOW",
    "KafkaAccess",
    "KafkaSilentError",
    "Login",
    "NotLetInError",
    "RefusedError",
    "ServerTLS",
    "TLSDoor",
    "TLSError",
    "Token",
    "Tries",
    "answered",
    "asking",
    "body_of",
    "hung_up",
    "load_identity",
    "login_of",
    "may",
    "object_of",
    "plain_server",
    "refusal",
    "run",
    "serve_wsgi",
    "source_of",
    "tls_door",
    "tls_server",
    "trusting_context",
]

__getattr__ = on_demand(__name__)
