"""An HTTP service of the site: where it listens, its page of metrics, whom Kafka lets in."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from prometheus_client import CollectorRegistry, Counter

from nightwire.core.kafka import identity
from nightwire.core.presence.registrar import metrics_at, reached_at
from nightwire.core.runtime import Endpoints, MetricsPage
from nightwire.schemas.serving import KafkaAccess, TLSDoor, plain_server, tls_server


@dataclass(frozen=True, kw_only=True)
class HttpService:
    """How a service is run.

    Attributes:
        where: The site's addresses.
        host: Where to listen.
        port: And at which port.
        metrics_port: Of the pages ``/metrics`` and ``/health``; 0 for none.
        door: For other machines, by TLS; None for none.
        tokens: Where Kafka judges the site's own tokens.
    """

    where: Endpoints
    host: str = "127.0.0.1"
    port: int = 0
    metrics_port: int = 0
    door: TLSDoor | None = None
    tokens: str = ""

    @property
    def url(self) -> str:
        """Where others of the site ask it."""
        return f"http://{reached_at(self.host, self.port)}"

    @property
    def endpoints(self) -> dict[str, str]:
        """What the directory says of it."""
        return {"http": self.url} | metrics_at(self.metrics_port)

    def access(self) -> KafkaAccess:
        """Return what asks Kafka, by our own client, who may do what."""
        client = {**identity(self.where.kafka), "bootstrap.servers": self.where.kafka}
        return KafkaAccess(client, self.tokens)

    def servers(self, inside: Any, outside: Any) -> list[uvicorn.Server]:
        """Return the servers: of *inside* here, of *outside* by TLS where that is asked for.

        Raises:
            TLSError: The door's certificate cannot be used.
        """
        doors = [tls_server(outside, self.door)] if self.door else []
        return [plain_server(inside, self.host, self.port), *doors]

    @contextmanager
    def metrics_page(
        self,
        registry: CollectorRegistry,
        servers: Sequence[uvicorn.Server],
        ready: Callable[[], bool],
        about: Callable[[], str] = str,
    ) -> Iterator[None]:
        """Show metrics within the block; healthy while *servers* listen and *ready* says so.

        ``/health`` says *about*, too.
        """
        page = MetricsPage(
            registry,
            port=self.metrics_port,
            healthy=lambda: all(server.started for server in servers) and ready(),
            about=about,
        )
        if self.metrics_port:
            page.start()
        try:
            yield
        finally:
            page.stop()


def request_counter(registry: CollectorRegistry, name: str) -> Counter:
    """Return the counter, of that *name*, of a service's requests."""
    return Counter(name, "Requests over HTTP, by path and status.", ["path", "status"], registry=registry)
