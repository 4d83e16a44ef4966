"""A directory in this process: what a test says is known, served over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter

from nightwire.core.runtime import free_port
from nightwire.directory.ingest import Follower
from nightwire.directory.model import SiteRows, View
from nightwire.directory.serve import Authorizer, Site, application
from nightwire.schemas.serving import KafkaAccess, plain_server
from tests._serving import running

LIVE_FILTER = {"version": 1, "survey": "sim", "cap": 20, "live": True}


@contextmanager
def directory_of(view: View, bootstrap: str, access: KafkaAccess | None = None) -> Iterator[str]:
    """Serve *view* as the directory of ``local`` to whom *access* lets in; yield its URL."""
    answered = Counter("answered", "Requests.", ["path", "status"], registry=None)
    site = Site(view, "local", bootstrap, Authorizer(access or KafkaAccess({})))
    with running(plain_server(application(site, answered), "127.0.0.1", free_port())) as at:
        yield f"http://{at}"


@contextmanager
def directory_on(bootstrap: str) -> Iterator[str]:
    """Serve the directory of the Kafka at *bootstrap*, which it follows; yield its URL."""
    view = View()
    follower = Follower(bootstrap, SiteRows(view, "local", bootstrap), interval=0.2)
    follower.start()
    try:
        assert follower.wait(60)
        with directory_of(view, bootstrap) as url:
            yield url
    finally:
        follower.stop()
        view.close()
