"""A mediator that serves on a port of its own, in this process."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter

from nightwire.core.kafka import identity
from nightwire.core.stack import free_port
from nightwire.core.tls import site as tls_site
from nightwire.directory.mediator import Mediator
from nightwire.directory.model import View
from nightwire.directory.serve import Authorizer, Site, application
from nightwire.schemas.serving import KafkaAccess, TLSDoor, plain_server, tls_server
from tests._serving import running


@dataclass(frozen=True)
class Served:
    """A mediator that serves.

    Attributes:
        http: Asks it.
        collected: Its counters.
    """

    http: httpx.Client
    collected: CollectorRegistry

    def count(self, name: str, **labels: str) -> float:
        """Return what a counter says; 0 where it says nothing."""
        return self.collected.get_sample_value(name, labels) or 0.0


Serving = Callable[..., AbstractContextManager[Served]]


@contextmanager
def served(
    bootstrap: str,
    *,
    access: KafkaAccess | None = None,
    registry: str = "",
    closed: bool = False,
    tls: tls_site.Site | None = None,
    archive: str = "",
) -> Iterator[Served]:
    """Serve the topics of *bootstrap* for a while; with *tls*, by the door for other machines."""
    view, collected, port = View(), CollectorRegistry(), free_port()
    answered = Counter("answered_total", "Requests.", ["path", "status"], registry=collected)
    access = access or KafkaAccess({**identity(bootstrap), "bootstrap.servers": bootstrap})
    mediator = Mediator(bootstrap, registry, collected, archive)
    site = Site(view, "here", bootstrap, Authorizer(access, anonymous_writes=not closed), mediator=mediator)
    app, scheme, trust = application(site, answered), "http", dict[str, Any]()
    if tls is None:
        server = plain_server(app, "127.0.0.1", port)
    else:
        server = tls_server(app, TLSDoor("127.0.0.1", port, tls.server))
        scheme, trust = "https", {"verify": ssl.create_default_context(cafile=tls.ca)}
    with (
        closing(view),
        running(server) as at,
        httpx.Client(base_url=f"{scheme}://{at}", timeout=90, trust_env=False, **trust) as http,
    ):
        yield Served(http, collected)


@pytest.fixture(scope="session")
def serving() -> Serving:
    """Return a function that serves topics for a while."""
    return served


@pytest.fixture
def here(kafka: str, serving: Serving) -> Iterator[Served]:
    """Yield a mediator of the Kafka of all tests, which asks nobody who he is."""
    with serving(kafka) as one:
        yield one
