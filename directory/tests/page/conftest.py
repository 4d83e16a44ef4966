"""The directory of a sample site over HTTP, on a socket of its own, without Kafka."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry, Counter

from directory.tests.sample import fill
from nightwire.core.stack import free_port
from nightwire.directory.model import SiteRows, View
from nightwire.directory.serve import Authorizer, Site, application
from nightwire.schemas.serving import KafkaAccess, plain_server
from tests._serving import running


@dataclass(frozen=True)
class Served:
    """What writes the rows of a site, and where they are served."""

    rows: SiteRows
    url: str


@contextmanager
def serving(access: KafkaAccess) -> Iterator[Served]:
    """Serve the sample site within the block, to whom *access* lets in."""
    view = View()
    rows = fill(view)
    answered = Counter("answered", "", ["path", "status"], registry=CollectorRegistry())
    app = application(Site(view, "local", "127.0.0.1:9092", Authorizer(access)), answered)
    with closing(view), running(plain_server(app, "127.0.0.1", free_port())) as at:
        yield Served(rows, f"http://{at}/")


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(KafkaAccess({})) as one:
        yield one
