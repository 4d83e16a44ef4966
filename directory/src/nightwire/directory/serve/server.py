"""The directory's process: the log followed behind, HTTP in front."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Thread

import uvicorn
from prometheus_client import CollectorRegistry, Counter, Gauge

from nightwire.core.kafka import DeliveryError, identity
from nightwire.core.presence import entry_key, metrics_at, reached_at, registered
from nightwire.core.runtime import Endpoints, MetricsPage, Stop, site_name
from nightwire.directory.following import Follower, write
from nightwire.directory.gate import Gate
from nightwire.directory.mediator import Mediator
from nightwire.directory.model import SiteRows, View
from nightwire.directory.serve.app import Site, application
from nightwire.directory.serve.health_watch import Watched, watch_all
from nightwire.directory.sites import MOST, Neighbours, SiteAddress
from nightwire.schemas.serving import KafkaAccess, TLSDoor, plain_server, run, tls_server
from nightwire.schemas.topics import DIRECTORY, SUBSCRIPTIONS

log = logging.getLogger("nightwire.directory")

GRACE = 86_400.0
"""Time after which a process that is gone is taken out. [s]"""
LOOK = 60.0
"""Time between two looks for such. [s]"""


@dataclass(frozen=True)
class Settings:
    """How a directory is run.

    Attributes:
        where: The site's addresses.
        host: Where to listen.
        port: And at which port.
        metrics_port: Of the pages ``/metrics`` and ``/health``; 0 for none.
        door: For other machines, by TLS; None for none.
        tokens: Where Kafka judges the site's own tokens.
        watched: What is registered while its page answers.
        grace: Time after which a process that is gone is taken out. [s]
        sites: Kafkas of other sites, whose directories are read too.
        max_sites: Most other sites that are followed, those learnt of among them.
    """

    where: Endpoints
    host: str = "127.0.0.1"
    port: int = 8083
    metrics_port: int = 0
    door: TLSDoor | None = None
    tokens: str = ""
    watched: Sequence[Watched] = field(default_factory=tuple)
    grace: float = GRACE
    sites: Sequence[SiteAddress] = ()
    max_sites: int = MOST

    @property
    def url(self) -> str:
        """Where others of the site ask it."""
        return f"http://{reached_at(self.host, self.port)}"


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
    neighbours = Neighbours(follower, view, where.kafka, settings.sites, settings.max_sites)
    count(collected, neighbours, view)
    servers = doors(settings, view, follower, collected)
    page = MetricsPage(
        collected,
        port=settings.metrics_port,
        healthy=lambda: all(server.started for server in servers) and follower.ready,
    )
    log.info("the directory of %s on %s", rows.site, settings.url)
    with ExitStack() as exits:
        exits.callback(view.close)
        if settings.metrics_port:
            page.start()
            exits.callback(page.stop)
        follower.start()
        exits.callback(follower.stop)
        neighbours.start()
        exits.callback(neighbours.stop)
        exits.enter_context(present(settings))
        exits.enter_context(forgetting(where.kafka, rows, settings.grace))
        run(servers)


def doors(
    settings: Settings, view: View, follower: Follower, collected: CollectorRegistry
) -> list[uvicorn.Server]:
    """Return the servers: one for this machine, one for others where that is asked for."""
    kafka = settings.where.kafka
    access = KafkaAccess({**identity(kafka), "bootstrap.servers": kafka}, settings.tokens)
    answered = Counter(
        "nightwire_directory_requests_total",
        "Requests to the directory, by path and HTTP status.",
        ["path", "status"],
        registry=collected,
    )
    mediator = Mediator(kafka, settings.where.schema_registry or "", collected, settings.where.archive or "")
    inside = Site(view, site_name(), kafka, Gate(access), lambda: follower.ready, mediator)
    outside = replace(inside, gate=Gate(access, open=False))
    servers = [plain_server(application(inside, answered), settings.host, settings.port)]
    door = settings.door
    servers += [tls_server(application(outside, answered), door)] if door else []
    mediator.ending = lambda: any(server.should_exit for server in servers)
    return servers


@contextmanager
def present(settings: Settings) -> Iterator[None]:
    """Keep the site, the directory itself and what it watches listed within the block."""
    where, stop = settings.where, Stop()
    said = {"kafka": where.kafka, "schema_registry": where.schema_registry or "", "directory": settings.url}
    endpoints = {"http": settings.url} | metrics_at(settings.metrics_port)
    watch_all(where.kafka, settings.watched, stop)
    with (
        registered(where.kafka, site_name(), kind="site", endpoints=said | dict(where.public)),
        registered(where.kafka, "directory", endpoints=endpoints),
    ):
        try:
            yield
        finally:
            stop.set()


def count(collected: CollectorRegistry, neighbours: Neighbours, view: View) -> None:
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
    sites.set_function(lambda: neighbours.refused)
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
            old = rows.forgettable(grace)
            gone = [entry_key({"site": rows.site, "kind": kind, "name": name}) for kind, name in old]
            take_out(DIRECTORY, gone)
            silent = rows.forgettable_interests(grace)
            take_out(SUBSCRIPTIONS, [f"{rows.site}/{who}/{name}" for who, name in silent])

    Thread(target=look, name="directory-forget", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
