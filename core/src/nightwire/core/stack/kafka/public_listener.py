"""The listener of Kafka's that other machines reach: by TLS, with a password or a token."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.runtime import LogLimiter
from nightwire.core.stack.kafka.auth import SCRAM_LOGIN, SCRAM_SHA_512
from nightwire.core.stack.kafka.listeners import SASL_SSL, Listener
from nightwire.core.stack.kafka.tokens import MECHANISM
from nightwire.core.tls.keystore import Keystore
from nightwire.core.tls.public import ANYWHERE, Public
from nightwire.core.tls.reload import reload_brokers
from nightwire.core.tls.site import SiteError

log = logging.getLogger("nightwire.stack")

PER_ADDRESS, MOST, A_SECOND = 256, 4096, 100
"""Most connections of one other machine, of all, and new ones in a second."""
RENEW_BEFORE = timedelta(days=30)
"""Who has not renewed a certificate so long before its end is reminded, once a day."""


class PublicListener:
    """Kafka's public listener, and the certificate that it shows.

    The super user does not come in here: its mechanism, PLAIN, is for this machine alone.

    Args:
        public: Name and certificate.
        folder: Kafka's, for the file that it reads.
        port: Where to listen.
        tokens: Settings by which tokens are judged; empty where none are taken.
    """

    def __init__(
        self, public: Public, folder: Path, port: int, tokens: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        self._keystore = Keystore(folder / "public.pem", public.certificate, public.key)
        self.port, self.address, self._tokens = port, f"{public.host}:{port}", tokens
        self._limiter, self._daily = LogLimiter(), LogLimiter(86_400)

    def listener(self) -> Listener:
        """Return the listener; the file of its certificate is there.

        Raises:
            SiteError: The certificate cannot be used.
        """
        self._keystore.path.parent.mkdir(parents=True, exist_ok=True)
        self._keystore.refresh()
        settings = {
            "scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._keystore.path,
            "ssl.allow.dn.changes": "true",
            "ssl.allow.san.changes": "true",
            "max.connections": MOST,
            "max.connection.creation.rate": A_SECOND,
        }
        return Listener(
            "PUBLIC",
            f"{ANYWHERE}:{self.port}",
            [SCRAM_SHA_512, *([MECHANISM] if self._tokens else [])],
            self.address,
            SASL_SSL,
            {**settings, **self._tokens},
        )

    def follow(self, kafka: AdminClient) -> bool:
        """Let *kafka* show a certificate that was renewed; return whether it does.

        What cannot be used is logged, and the one before stays; so is one that ends soon.
        """
        left = self._keystore.left()
        if left < RENEW_BEFORE and self._daily.allows():
            log.warning("the certificate for other machines ends in %d days: renew it", left.days)
        try:
            if not self._keystore.refresh():
                return False
            reload_brokers(kafka)
        except (SiteError, KafkaException) as error:
            self._keystore.forget()
            if self._limiter.allows():
                log.warning("Kafka goes on with the certificate that it has: %s", error)
            return False
        log.info("Kafka shows the renewed certificate")
        return True


LIMITS = {
    "max.connections.per.ip": PER_ADDRESS,
    "max.connections.per.ip.overrides": f"127.0.0.1:{(1 << 31) - 1}",  # the stack's own processes
}
"""Kafka's settings beside those of the listener: addresses are counted over all listeners."""
