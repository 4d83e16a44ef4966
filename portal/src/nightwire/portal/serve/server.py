"""The portal's process: Kafka followed behind, HTTP in front."""

import logging
import os
from collections.abc import Mapping, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import uvicorn
from prometheus_client import CollectorRegistry, Gauge
from starlette.datastructures import Headers

from nightwire.core.catalogues import catalogues_here
from nightwire.core.kafka import identity
from nightwire.core.presence import HttpService, registered, request_counter
from nightwire.core.runtime import site_name, tune_garbage_collector
from nightwire.filters.sandbox import Strength
from nightwire.portal.archive import Archive
from nightwire.portal.authorization import Authorizer
from nightwire.portal.filters import FilterActions
from nightwire.portal.follower import Follower
from nightwire.portal.model import RecentAlerts
from nightwire.portal.pipeline_status import PipelineStatus
from nightwire.portal.records import Records, StampCache
from nightwire.portal.serve.app import application
from nightwire.portal.serve.live import LiveStreams
from nightwire.portal.serve.portal import Portal
from nightwire.portal.skymaps import SkymapCache
from nightwire.schemas.serving import run

log = logging.getLogger("nightwire.portal")

YIELDS = 10
"""How much of the CPU's priority the portal leaves to those who carry the stream (`nice`)."""


@dataclass(frozen=True, kw_only=True)
class Settings(HttpService):
    """How a portal is run.

    Attributes:
        public: Whether who shows no name sees the surveys' alerts.
        proxied: Whether a proxy in front ends TLS: cookies are for TLS alone.
        local: Whether the plain door is published to this machine alone, as a container's.
        strength: Of the sandbox in which filters are tried.
        keep: Newest alerts of each topic that are found by id and place.
        last: Alerts of each topic to begin with.
        skymaps: Those that VOEvents name, fetched and drawn.
        archive: URL of the archive; empty: the one that *where* names, if any.
        directory: URL of the directory, likewise.
    """

    public: bool = False
    proxied: bool = False
    local: bool = False
    strength: Strength = "strong"
    keep: int = 20_000
    last: int = 500
    skymaps: SkymapCache = field(default_factory=SkymapCache)
    archive: str = ""
    directory: str = ""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        TLSError: The door's certificate cannot be used.
    """
    collected, stamps = CollectorRegistry(), StampCache()
    where = replace(settings.where, directory=settings.directory or settings.where.directory)
    # it writes the flows of owners, as whom `notify_owner` asks for it
    os.environ.update({"NIGHTWIRE_DIRECTORY": where.directory} if where.directory else {})
    recent, own = RecentAlerts(settings.keep), identity(where.kafka)
    login = (own["sasl.username"], own.get("sasl.password", "")) if "sasl.username" in own else None
    past = settings.archive or where.archive
    records = Records(where, stamps, Archive(past, login) if past else None)
    follower, streams = Follower(where, recent, stamps, settings.last), LiveStreams()
    access = settings.access()
    authorizer = Authorizer(access, settings.public, settings.proxied or settings.local)
    actions = FilterActions(
        replace(where, archive=past or None), access, signing_secret(own), settings.strength
    )
    portal = Portal(
        recent, records, authorizer, lambda: follower.topics, lambda: follower.trouble, site_name(), actions,
        pipeline=PipelineStatus(where), catalogues=catalogues_here(), skymaps=settings.skymaps,
    )  # fmt: skip
    count(collected, recent, follower, streams)
    servers = doors(settings, portal, collected, streams)
    streams.ending = lambda: any(server.should_exit for server in servers)
    log.info("the portal of %s on %s", portal.site, settings.url)
    with ExitStack() as exits:
        exits.callback(records.close)
        exits.enter_context(settings.metrics_page(collected, servers, lambda: follower.ready))
        follower.start()
        exits.callback(follower.stop)
        exits.enter_context(registered(where.kafka, "portal", endpoints=settings.endpoints))
        yield_to_the_stream()
        run(servers)


def yield_to_the_stream() -> None:
    """Leave the CPU to those who carry the stream, and look less often for garbage."""
    os.nice(YIELDS)
    tune_garbage_collector()


def doors(
    settings: Settings, portal: Portal, collected: CollectorRegistry, streams: LiveStreams
) -> list[uvicorn.Server]:
    """Return the servers: one for this machine, one for others where that is asked for."""
    answered = request_counter(collected, "nightwire_portal_requests_total")
    plain = application(portal, answered, streams, private=settings.proxied)
    outside = application(portal, answered, streams, private=True)
    return settings.servers(behind_proxy(plain) if settings.proxied else plain, outside)


def behind_proxy(app: Any) -> Any:
    """Return *app* as it stands behind a proxy that ends TLS: who asks is whom that one names.

    Of several names in ``X-Forwarded-For`` the last is the proxy's; those before are anybody's.
    """

    async def seen(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            named = ",".join(Headers(scope=scope).getlist("X-Forwarded-For"))
            if last := named.rpartition(",")[2].strip()[:64]:
                scope["client"] = last, 0
            scope["scheme"] = "https"
        await app(scope, receive, send)

    return seen


def signing_secret(client: Mapping[str, str]) -> str:
    """Return what signs links to texts of filters, for as long as our own password stays.

    Where nobody has one, everybody may read every text, and whoever likes may make a link.
    """
    return sha256(f"links {client.get('sasl.password', '')}".encode()).hexdigest()


def count(
    collected: CollectorRegistry, recent: RecentAlerts, follower: Follower, streams: LiveStreams
) -> None:
    """Let Prometheus see what is known, and what could not be read."""
    gauges = {
        "nightwire_portal_recent_alerts": ("Alerts that are found by id and place.", lambda: len(recent)),
        "nightwire_portal_read_alerts": ("Alerts read since the start.", lambda: recent.newest_number),
        "nightwire_portal_undecodable_records": ("Records without an alert.", lambda: follower.undecodable),
        "nightwire_portal_live_streams": ("Live lists that are open.", lambda: streams.count),
    }
    for name, (says, value) in gauges.items():
        Gauge(name, says, registry=collected).set_function(value)
