"""A mediator that serves on a port of its own, in this process."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter

from nightwire.core.kafka import identity
from nightwire.core.stack import free_port
from nightwire.directory.mediator import Mediator
from nightwire.directory.model import View
from nightwire.directory.serve import Gate, Site, application
from nightwire.schemas.serving import KafkaAccess, plain_server, run


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
    bootstrap: str, *, access: KafkaAccess | None = None, registry: str = "", closed: bool = False
) -> Iterator[Served]:
    """Serve the topics of *bootstrap* for a while."""
    view, collected, port = View(), CollectorRegistry(), free_port()
    answered = Counter("answered_total", "Requests.", ["path", "status"], registry=collected)
    access = access or KafkaAccess({**identity(bootstrap), "bootstrap.servers": bootstrap})
    mediator = Mediator(bootstrap, registry, collected)
    site = Site(view, "here", bootstrap, Gate(access, open=not closed), mediator=mediator)
    server = plain_server(application(site, answered), "127.0.0.1", port)
    thread = threading.Thread(target=run, args=([server],))
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)  # polling a server, not hoping
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=90, trust_env=False) as http:
            yield Served(http, collected)
    finally:
        server.should_exit = True
        thread.join()
        view.close()


@pytest.fixture(scope="session")
def serving() -> Serving:
    """Return a function that serves topics for a while."""
    return served


@pytest.fixture
def here(kafka: str, serving: Serving) -> Iterator[Served]:
    """Yield a mediator of the Kafka of all tests, which asks nobody who he is."""
    with serving(kafka) as one:
        yield one
