"""The portal's process: the follower of Kafka, and HTTP servers."""

import logging
import os
import re
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
from nightwire.portal.archive_client import Archive
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

NICENESS = 10
"""Added to the process's niceness: those who carry the stream get the CPU first."""
WITH_PORT = re.compile(r"\[(.*)\](:\d+)?|([\d.]+):\d+")
"""An address as some proxies write it: with a port, IPv6 in brackets."""


@dataclass(frozen=True, kw_only=True)
class Settings(HttpService):
    """How a portal is run.

    Attributes:
        public: Whether anonymous users see the surveys' alerts.
        proxied: Whether a proxy in front ends TLS: cookies are for TLS alone.
        local: Whether the plain port is published to this machine alone, as a container's.
        strength: Of the sandbox in which filters are tried.
        keep: Newest alerts of each topic that are found by id and place.
        last: Alerts of each topic to begin with.
        skymaps: Those that VOEvents name, fetched and drawn.
        archive: URL of the archive; empty: that of *where*, if any.
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
        TLSError: The certificate cannot be used.
    """
    collected, stamps = CollectorRegistry(), StampCache()
    where = replace(settings.where, directory=settings.directory or settings.where.directory)
    # `notify_owner` asks the directory, as an owner, to write his flow
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
    register_gauges(collected, recent, follower, streams)
    servers = make_servers(settings, portal, collected, streams)
    streams.ending = lambda: any(server.should_exit for server in servers)
    log.info("the portal of %s on %s", portal.site, settings.url)
    with ExitStack() as exits:
        exits.callback(records.close)
        exits.enter_context(settings.metrics_page(collected, servers, lambda: follower.ready))
        follower.start()
        exits.callback(follower.stop)
        exits.enter_context(registered(where.kafka, "portal", endpoints=settings.endpoints))
        lower_priority()
        run(servers)


def lower_priority() -> None:
    """Raise the process's niceness, and collect garbage less often."""
    os.nice(NICENESS)
    tune_garbage_collector()


def make_servers(
    settings: Settings, portal: Portal, collected: CollectorRegistry, streams: LiveStreams
) -> list[uvicorn.Server]:
    """Return the HTTP servers: a plain one, and one with TLS where the settings have it."""
    counter = request_counter(collected, "nightwire_portal_requests_total")
    plain = application(portal, counter, streams, private=settings.proxied)
    with_tls = application(portal, counter, streams, private=True)
    return settings.servers(behind_proxy(plain) if settings.proxied else plain, with_tls)


def behind_proxy(app: Any) -> Any:
    """Return *app* behind a proxy that ends TLS: its client is the last of ``X-Forwarded-For``.

    The proxy wrote the last name there; those before it may be anybody's.
    """

    async def proxied(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            named = ",".join(Headers(scope=scope).getlist("X-Forwarded-For"))
            if last := named.rpartition(",")[2].strip()[:64]:
                found = WITH_PORT.fullmatch(last)
                scope["client"] = (found[1] or found[3] if found else last), 0
            scope["scheme"] = "https"
        await app(scope, receive, send)

    return proxied


def signing_secret(client: Mapping[str, str]) -> str:
    """Return the key that signs links to filters' texts, made of the portal's own password.

    Where Kafka demands none, every text is public, and so is the key.
    """
    return sha256(f"links {client.get('sasl.password', '')}".encode()).hexdigest()


def register_gauges(
    collected: CollectorRegistry, recent: RecentAlerts, follower: Follower, streams: LiveStreams
) -> None:
    """Register the portal's gauges."""
    gauges = {
        "nightwire_portal_recent_alerts": ("Alerts that are found by id and place.", lambda: len(recent)),
        "nightwire_portal_read_alerts": ("Alerts read since the start.", lambda: recent.count_read),
        "nightwire_portal_undecodable_records": ("Records without an alert.", lambda: follower.undecodable),
        "nightwire_portal_live_streams": ("Live lists that are open.", lambda: streams.count),
    }
    for name, (says, value) in gauges.items():
        Gauge(name, says, registry=collected).set_function(value)
