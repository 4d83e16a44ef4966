"""The directory's process: the log followed behind, HTTP in front."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Thread

import uvicorn
from prometheus_client import CollectorRegistry, Gauge

from nightwire.core.kafka import DeliveryError
from nightwire.core.presence import HttpService, entry_key, registered, request_counter
from nightwire.core.runtime import Stop, site_name
from nightwire.directory.authorization import Authorizer
from nightwire.directory.ingest import Follower, write
from nightwire.directory.mediator import Mediator
from nightwire.directory.model import SiteRows, View
from nightwire.directory.serve.app import Site, application
from nightwire.directory.serve.health_watch import Watched, watch_all
from nightwire.directory.sites import MAX_SITES, SiteAddress, SiteDiscovery
from nightwire.schemas.serving import run
from nightwire.schemas.topics import DIRECTORY, SUBSCRIPTIONS

log = logging.getLogger("nightwire.directory")

GRACE = 86_400.0
"""Time after which a process that is gone is taken out. [s]"""
LOOK = 60.0
"""Time between two looks for such. [s]"""


@dataclass(frozen=True, kw_only=True)
class Settings(HttpService):
    """How a directory is run.

    Attributes:
        watched: What is registered while its page answers.
        grace: Time after which a process that is gone is taken out. [s]
        sites: Kafkas of other sites, whose directories are read too.
        max_sites: Most other sites that are followed, those learnt of among them.
    """

    watched: Sequence[Watched] = field(default_factory=tuple)
    grace: float = GRACE
    sites: Sequence[SiteAddress] = ()
    max_sites: int = MAX_SITES


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        TLSError: The door's certificate cannot be used.
    """
    where, view, collected = settings.where, View(), CollectorRegistry()
    registry = where.schema_registry or ""
    shown = {"kafka": where.kafka, "schema_registry": registry} | dict(where.public)
    rows = SiteRows(view, site_name(), shown["kafka"], shown["schema_registry"])
    follower = Follower(where.kafka, rows, registry)
    discovery = SiteDiscovery(follower, view, where.kafka, settings.sites, settings.max_sites)
    count(collected, discovery, view)
    servers = doors(settings, view, follower, collected)
    log.info("the directory of %s on %s", rows.site, settings.url)
    with ExitStack() as exits:
        exits.callback(view.close)
        exits.enter_context(settings.metrics_page(collected, servers, lambda: follower.ready))
        follower.start()
        exits.callback(follower.stop)
        discovery.start()
        exits.callback(discovery.stop)
        exits.enter_context(present(settings))
        exits.enter_context(forgetting(where.kafka, rows, settings.grace))
        run(servers)


def doors(
    settings: Settings, view: View, follower: Follower, collected: CollectorRegistry
) -> list[uvicorn.Server]:
    """Return the servers: one for this machine, one for others where that is asked for."""
    kafka, access = settings.where.kafka, settings.access()
    answered = request_counter(collected, "nightwire_directory_requests_total")
    mediator = Mediator(kafka, settings.where.schema_registry or "", collected, settings.where.archive or "")
    inside = Site(view, site_name(), kafka, Authorizer(access), lambda: follower.ready, mediator)
    outside = replace(inside, authorizer=Authorizer(access, anonymous_writes=False))
    servers = settings.servers(application(inside, answered), application(outside, answered))
    mediator.stopping = lambda: any(server.should_exit for server in servers)
    return servers


@contextmanager
def present(settings: Settings) -> Iterator[None]:
    """Keep the site, the directory itself and what it watches listed within the block."""
    where, stop = settings.where, Stop()
    said = {"kafka": where.kafka, "schema_registry": where.schema_registry or "", "directory": settings.url}
    watch_all(where.kafka, settings.watched, stop)
    with (
        registered(where.kafka, site_name(), kind="site", endpoints=said | dict(where.public)),
        registered(where.kafka, "directory", endpoints=settings.endpoints),
    ):
        try:
            yield
        finally:
            stop.set()


def count(collected: CollectorRegistry, discovery: SiteDiscovery, view: View) -> None:
    """Let Prometheus see what is known."""
    refused = Gauge(
        "nightwire_directory_refused_records",
        "Records of logs that could not stand in the directory, of all sites.",
        registry=collected,
    )
    refused.set_function(lambda: view.query("SELECT sum(refused) FROM site_logs").rows[0][0])
    sites = Gauge(
        "nightwire_directory_refused_sites",
        "Kafkas that claimed a name of another, several names, or to be one site too many.",
        registry=collected,
    )
    sites.set_function(lambda: discovery.refused)
    known = Gauge("nightwire_directory_entries", "Entries known, of all sites.", registry=collected)
    known.set_function(lambda: view.query("SELECT count(*) FROM entries").rows[0][0])


@contextmanager
def forgetting(bootstrap: str, rows: SiteRows, grace: float) -> Iterator[None]:
    """Take out who is gone, and what nobody wants any more, for longer than *grace* [s]."""
    stop = Stop()

    def take_out(topic: str, gone: list[str]) -> None:
        with suppress(DeliveryError):  # tried again at the next look
            write(bootstrap, dict.fromkeys(gone), topic)
            for key in gone:
                log.info("%s is taken out: it has been gone for %.0f h", key, grace / 3600)

    def look() -> None:
        while not stop.wait(min(LOOK, grace)):
            old = rows.expired_entries(grace)
            gone = [entry_key({"site": rows.site, "kind": kind, "name": name}) for kind, name in old]
            take_out(DIRECTORY, gone)
            silent = rows.expired_interests(grace)
            take_out(SUBSCRIPTIONS, [f"{rows.site}/{who}/{name}" for who, name in silent])

    Thread(target=look, name="directory-forget", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
