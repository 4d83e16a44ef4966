"""A directory in this process: what a test says is known, served over HTTP."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from prometheus_client import Counter

from nightwire.core.runtime import free_port
from nightwire.directory.ingest import Follower
from nightwire.directory.model import SiteRows, View
from nightwire.directory.serve import Authorizer, Site, application
from nightwire.schemas.serving import KafkaAccess, plain_server

LIVE_FILTER = {"version": 1, "survey": "sim", "cap": 20, "live": True}


@contextmanager
def directory_of(view: View, bootstrap: str, access: KafkaAccess | None = None) -> Iterator[str]:
    """Serve *view* as the directory of ``local`` to whom *access* lets in; yield its URL."""
    answered = Counter("answered", "Requests.", ["path", "status"], registry=None)
    site = Site(view, "local", bootstrap, Authorizer(access or KafkaAccess({})))
    port = free_port()
    server = plain_server(application(site, answered), "127.0.0.1", port)
    thread = Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)  # polling, not hoping
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


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
