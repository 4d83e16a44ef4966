"""The directory's process: follower, site discovery, HTTP servers, expiry."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import uvicorn
from prometheus_client import CollectorRegistry, Gauge

from nightwire.core.presence import HttpService, registered, request_counter
from nightwire.core.runtime import Stop, site_name
from nightwire.directory.authorization import Authorizer
from nightwire.directory.ingest import Follower
from nightwire.directory.mediator import Mediator
from nightwire.directory.model import SiteRows, View
from nightwire.directory.serve.app import Site, application
from nightwire.directory.serve.expiry import expiry
from nightwire.directory.serve.health_watch import WatchedProcess, watch_all
from nightwire.directory.sites import MAX_SITES, SiteAddress, SiteDiscovery
from nightwire.schemas.serving import run

log = logging.getLogger("nightwire.directory")

GRACE = 86_400.0
"""Time after which the entry of a process that is gone is deleted. [s]"""


@dataclass(frozen=True, kw_only=True)
class Settings(HttpService):
    """Settings of a directory.

    Attributes:
        watched: Processes that are registered while their page answers.
        grace: Time after which the entry of a process that is gone is deleted. [s]
        sites: Kafkas of other sites, whose directories are read too.
        max_sites: Most other sites that are followed, those learnt of among them.
    """

    watched: Sequence[WatchedProcess] = field(default_factory=tuple)
    grace: float = GRACE
    sites: Sequence[SiteAddress] = ()
    max_sites: int = MAX_SITES


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        TLSError: The server's certificate cannot be used.
    """
    where, view, metrics = settings.where, View(), CollectorRegistry()
    registry = where.schema_registry or ""
    public = {"kafka": where.kafka, "schema_registry": registry} | dict(where.public)
    rows = SiteRows(view, site_name(), public["kafka"], public["schema_registry"])
    follower = Follower(where.kafka, rows, registry)
    discovery = SiteDiscovery(follower, view, where.kafka, settings.sites, settings.max_sites)
    register_gauges(metrics, discovery, view)
    servers = http_servers(settings, view, follower, metrics)
    log.info("the directory of %s on %s", rows.site, settings.url)
    with ExitStack() as exits:
        exits.callback(view.close)
        exits.enter_context(settings.metrics_page(metrics, servers, lambda: follower.ready))
        follower.start()
        exits.callback(follower.stop)
        discovery.start()
        exits.callback(discovery.stop)
        exits.enter_context(registrations(settings))
        exits.enter_context(expiry(where.kafka, rows, settings.grace))
        run(servers)


def http_servers(
    settings: Settings, view: View, follower: Follower, metrics: CollectorRegistry
) -> list[uvicorn.Server]:
    """Return the servers: for this machine, and if configured for others."""
    kafka, access = settings.where.kafka, settings.access()
    requests = request_counter(metrics, "nightwire_directory_requests_total")
    mediator = Mediator(kafka, settings.where.schema_registry or "", metrics, settings.where.archive or "")
    inside = Site(view, site_name(), kafka, Authorizer(access), lambda: follower.ready, mediator)
    outside = replace(inside, authorizer=Authorizer(access, anonymous_writes=False))
    servers = settings.servers(application(inside, requests), application(outside, requests))
    mediator.stopping = lambda: any(server.should_exit for server in servers)
    return servers


@contextmanager
def registrations(settings: Settings) -> Iterator[None]:
    """Keep the site, the directory and watched processes registered within the block."""
    where, stop = settings.where, Stop()
    registry = where.schema_registry or ""
    endpoints = {"kafka": where.kafka, "schema_registry": registry, "directory": settings.url}
    watch_all(where.kafka, settings.watched, stop)
    with (
        registered(where.kafka, site_name(), kind="site", endpoints=endpoints | dict(where.public)),
        registered(where.kafka, "directory", endpoints=settings.endpoints),
    ):
        try:
            yield
        finally:
            stop.set()


def register_gauges(metrics: CollectorRegistry, discovery: SiteDiscovery, view: View) -> None:
    """Register the directory's gauges in *metrics*."""
    refused = Gauge(
        "nightwire_directory_refused_records",
        "Records of logs that could not stand in the directory, of all sites.",
        registry=metrics,
    )
    refused.set_function(lambda: view.query("SELECT sum(refused) FROM site_logs").rows[0][0])
    sites = Gauge(
        "nightwire_directory_refused_sites",
        "Kafkas that claimed a name of another, several names, or to be one site too many.",
        registry=metrics,
    )
    sites.set_function(lambda: discovery.refused)
    known = Gauge("nightwire_directory_entries", "Entries known, of all sites.", registry=metrics)
    known.set_function(lambda: view.query("SELECT count(*) FROM entries").rows[0][0])
