"""The listener of Kafka's that other machines reach: by TLS, with the password of an owner."""

import logging
from datetime import timedelta
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.runtime import LogLimiter
from nightwire.core.stack.kafka.auth import PROTOCOLS, SCRAM_LOGIN
from nightwire.core.tls.keystore import Keystore
from nightwire.core.tls.public import ANYWHERE, Public
from nightwire.core.tls.reload import PUBLIC, reload_brokers
from nightwire.core.tls.site import SiteError

log = logging.getLogger("nightwire.stack")

RENEW_BEFORE = timedelta(days=30)
"""Who has not renewed a certificate so long before its end is reminded, once a day."""


class PublicListener:
    """Kafka's public listener, and the certificate that it shows.

    The super user does not come in here: its mechanism, PLAIN, is for this machine alone.

    Args:
        public: Name and certificate.
        folder: Kafka's, for the file that it reads.
        port: Where to listen.
    """

    def __init__(self, public: Public, folder: Path, port: int) -> None:
        self._keystore = Keystore(folder / "public.pem", public.certificate, public.key)
        self.port, self.address = port, f"{public.host}:{port}"
        self._limiter, self._daily = LogLimiter(), LogLimiter(86_400)

    def properties(self, port: int, controller: int) -> dict[str, object]:
        """Return Kafka's settings, beside those of `auth.listener_properties`.

        Args:
            port: Of the listener for this machine.
            controller: Of the controller's.

        Raises:
            SiteError: The certificate cannot be used.
        """
        self._keystore.path.parent.mkdir(parents=True, exist_ok=True)
        self._keystore.refresh()
        local = f"CLIENT://127.0.0.1:{port}"
        return {
            "listeners": f"{local},PUBLIC://{ANYWHERE}:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"{local},PUBLIC://{self.address}",
            "listener.security.protocol.map": f"{PROTOCOLS},PUBLIC:SASL_SSL",
            f"{PUBLIC}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{PUBLIC}.scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
            f"{PUBLIC}.ssl.keystore.type": "PEM",
            f"{PUBLIC}.ssl.keystore.location": self._keystore.path,
            f"{PUBLIC}.ssl.allow.dn.changes": "true",
            f"{PUBLIC}.ssl.allow.san.changes": "true",
        }

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
