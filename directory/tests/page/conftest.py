"""The directory of a sample site over HTTP, on a socket of its own, without Kafka."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Thread

import pytest
from prometheus_client import CollectorRegistry, Counter

from directory.tests.sample import fill
from nightwire.core.stack import free_port
from nightwire.directory.gate import Gate
from nightwire.directory.model import View
from nightwire.directory.serve.app import Site, application
from nightwire.schemas.serving import plain_server
from nightwire.schemas.serving.kafka_access import KafkaAccess


@dataclass(frozen=True)
class Served:
    """A view, and where it is served."""

    view: View
    url: str


@pytest.fixture
def served() -> Iterator[Served]:
    view, port = View(), free_port()
    fill(view)
    answered = Counter("answered", "", ["path", "status"], registry=CollectorRegistry())
    app = application(Site(view, "local", "127.0.0.1:9092", Gate(KafkaAccess({}))), answered)
    server = plain_server(app, "127.0.0.1", port)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive()
    yield Served(view, f"http://127.0.0.1:{port}/")
    server.should_exit = True
    thread.join(30)
    view.close()
