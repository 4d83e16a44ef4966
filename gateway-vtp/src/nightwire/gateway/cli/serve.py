"""``nightwire gateway serve``: its options become settings, and its process runs."""

import asyncio
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from nightwire.core.presence import metrics_at, reached_at, registered
from nightwire.core.runtime import (
    Endpoints,
    MetricsPage,
    NoStackError,
    StateError,
    find_endpoints,
    setup_logging,
    stopping,
)
from nightwire.gateway.cli.log_limits import RateLimitFilter
from nightwire.gateway.cli.serve_defaults import with_defaults
from nightwire.gateway.cli.serve_options import gcn_properties
from nightwire.gateway.cli.tls_options import read_tls_settings
from nightwire.gateway.eventlog.settings import EventLogSettings
from nightwire.gateway.fanout.feed import DEFAULT_FEED, Feed, SubscriberSettings, feed_topics
from nightwire.gateway.fanout.feed_config import read_feeds, read_topics
from nightwire.gateway.gateway import Gateway, GatewayFailedError, Settings
from nightwire.gateway.handlers.plugins import PluginError, installed_plugins
from nightwire.gateway.handlers.settings import (
    PRINT_EVENT,
    SAVE_EVENT,
    HandlerSettings,
    HandlerSpec,
    read_handlers,
)
from nightwire.gateway.ingest.settings import AuthorSettings, GcnSettings, UpstreamSettings
from nightwire.gateway.net.access import ANYWHERE, Access, Door
from nightwire.gateway.net.addresses import Address, read_address
from nightwire.gateway.net.limits import Limits
from nightwire.gateway.net.open_files import allow_open_files
from nightwire.gateway.net.tls import TLSSettings, server_tls
from nightwire.gateway.signing.requirements import SignatureSettings
from nightwire.gateway.signing.signing_key import SigningError
from nightwire.gateway.signing.trust_policy import PolicyError, read_policy
from nightwire.gateway.status.page import status_page
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)


def read_settings(options: dict[str, Any]) -> Settings:
    """Return the settings of the *options* of ``serve``.

    Raises:
        ValueError: One of them makes no sense, or there is no Kafka; the message says which.
    """
    found = _find_endpoints(options)
    options = with_defaults(options, beside=found.vtp_authors is not None)
    tls = read_tls_settings(options)
    limits = Limits(options["max_connections"], options["max_per_address"], options["frame_timeout"])
    authors = _author_settings(options, limits, tls)
    handlers, signatures = read_handler_settings(options), read_signature_settings(options)
    gcn, feeds = read_gcn_settings(options), _read_feeds(options)
    if any(feed.has_alerts for feed in feeds) and not found.schema_registry:
        raise ValueError("a feed of alerts needs the schema registry: name it with --registry URL")
    settings = Settings(
        log=_log_settings(options, found.kafka, feeds),
        authors=authors,
        subscribers=SubscriberSettings(
            feeds,
            _tls_door(options["tls_subscribers"], 8499, feeds[0].access, tls),
            limits,
            iamalive=options["iamalive"],
            max_frame=options["subscriber_max_frame"],
            answer_timeout=signatures.answer_timeout,
        ),
        ivoid=options["ivorn"],
        registry=found.schema_registry,
        upstreams=_upstream_settings(options, authors, tls),
        gcn=gcn,
        handlers=handlers,
        signatures=signatures,
        tls=tls,
        test_interval=options["test_interval"],
    )
    doors = (settings.authors.tls_door, settings.subscribers.tls_door)
    if settings.authors.address.tls or any(feed.address.tls for feed in feeds) or any(doors):
        server_tls(tls)
    return settings


def _log_settings(options: Mapping[str, Any], kafka: str, feeds: tuple[Feed, ...]) -> EventLogSettings:
    state: Path = options["state"]
    return EventLogSettings(
        kafka,
        state.absolute(),
        feed_topics(feeds),
        remembered_days=options["remembered_days"],
        accounts=options["accounts"],
        ring_events=options["ring_events"],
    )


def _author_settings(options: Mapping[str, Any], limits: Limits, tls: TLSSettings) -> AuthorSettings:
    access = Access(options["author_allow"], options["author_deny"])
    return AuthorSettings(
        read_address(options["authors"], 8098),
        access,
        _tls_door(options["tls_authors"], 8498, access, tls),
        limits,
        timeout=options["author_timeout"],
        max_frame=options["max_frame"],
        max_depth=options["max_depth"],
        memory=options["author_memory"] << 20,
    )


def _tls_door(text: str | None, port: int, access: Access, tls: TLSSettings) -> Door | None:
    """Return the door at *text*; who shows a certificate may come from everywhere."""
    if text is None:
        return None
    address = read_address(text, port)
    networks = Access(ANYWHERE, access.deny) if tls.client_ca else access
    return Door(Address(address.host, address.port, tls=True), networks)


def _upstream_settings(
    options: Mapping[str, Any], authors: AuthorSettings, tls: TLSSettings
) -> UpstreamSettings:
    return UpstreamSettings(
        tuple(read_address(text, 8099) for text in options["remotes"]),
        options["remote_filters"],
        options["remote_replay"],
        options["remote_timeout"],
        authors.limits.frame_timeout,
        authors.max_frame,
        authors.max_depth,
        tls,
    )


def _read_feeds(options: Mapping[str, Any]) -> tuple[Feed, ...]:
    """Return the feeds, the default one first."""
    topics = ["voevents", *options["feed_topics"]]
    for topic in options["feed_topics"]:
        if not topic.startswith("filter."):
            raise ValueError(
                f"--feed {topic!r}: only a filter's topic, filter.OWNER.NAME; others are said in --config"
            )
    default = Feed(
        DEFAULT_FEED,
        read_address(options["subscribers"], 8099),
        topics=read_topics(topics),
        access=Access(options["subscriber_allow"], options["subscriber_deny"]),
        roles=options["feed_roles"],
        replay=options["replay"],
    )
    return read_feeds(options["config"], default)


def _find_endpoints(options: Mapping[str, Any]) -> Endpoints:
    """Return the addresses given, or those of the running stack, its gateway's among them."""
    try:
        return find_endpoints(options["bootstrap"], options["registry"])
    except NoStackError as error:
        raise ValueError(str(error)) from error


def read_gcn_settings(options: Mapping[str, Any]) -> GcnSettings | None:
    """Return what is read of GCN; None: nothing.

    Raises:
        ValueError: There are no credentials for it.
    """
    if not options["gcn"]:
        return None
    oldest = options["gcn_start"] == "oldest"
    properties = gcn_properties(os.environ)
    return GcnSettings(options["gcn_bootstrap"], options["gcn_topics"], oldest, properties)


def read_handler_settings(options: Mapping[str, Any]) -> HandlerSettings:
    """Return the settings of handlers.

    Raises:
        ValueError: One of them makes no sense; the message says which.
    """
    builtin = [PRINT_EVENT] * options["print_event"] + [SAVE_EVENT] * options["save_event"]
    named = [*options["plugins"], *builtin]
    plugin_options, folder = list(options["plugin_options"]), options["save_event_directory"]
    if folder is not None:
        if SAVE_EVENT not in named:
            raise ValueError("--save-event-directory is of use with --save-event only")
        plugin_options.append(f"{SAVE_EVENT}.directory={folder}")
    specs = read_handlers(options["commands"], named, plugin_options, installed_plugins())
    for spec in specs:
        _check_command(spec)
    keys = ("roles", "jobs", "timeout", "catch_up")
    return HandlerSettings(specs, **{key: options[key] for key in keys})


def read_signature_settings(options: Mapping[str, Any]) -> SignatureSettings:
    """Return the settings of signatures.

    Raises:
        ValueError: They make no sense; the message says why.
    """
    settings = SignatureSettings(
        options["require_signature"],
        options["keyring"],
        options["signature_policy"],
        options["sign_key"],
        options["answer_timeout"],
    )
    if settings.required and settings.keyring is None:
        raise ValueError(
            "--require-signature needs the keys that are trusted: name their folder with --keyring"
        )
    if settings.keyring is not None and not settings.keyring.is_dir():
        raise ValueError(f"--keyring {settings.keyring}: no such folder")
    try:
        if settings.policy is not None:
            read_policy(settings.policy.read_text())
    except (PolicyError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--signature-policy {settings.policy}: {error}") from error
    return settings


def serve_until_stopped(settings: Settings, metrics_port: int) -> int:
    """Run a gateway until a signal stops it; return the exit status."""
    setup_logging("nightwire.gateway")
    for handler in logging.getLogger().handlers:
        handler.addFilter(RateLimitFilter(time.monotonic))
    allow_open_files((1 + len(settings.subscribers.feeds)) * settings.authors.limits.connections)
    registry = CollectorRegistry()
    gateway = Gateway(settings, registry)
    said = presence(settings, metrics_port)
    try:
        with (
            stopping() as stop,
            registered(settings.log.bootstrap, "gateway", **said),
            _page(gateway, registry, metrics_port),
        ):
            asyncio.run(gateway.run(stop))
    except (GatewayFailedError, PluginError, SigningError, StateError, OSError) as error:
        log.error("%s", error)  # noqa: TRY400  (the cause is logged where it happened)
        return 1
    return 0


def presence(settings: Settings, metrics_port: int) -> dict[str, Any]:
    """Return what the directory says of a gateway: where it listens, and its feeds."""
    feeds = settings.subscribers.feeds
    doors = {"vtp_authors": settings.authors.address, "vtp_subscribers": feeds[0].address}
    listed = [
        {"name": one.name, "topics": list(one.topics), "endpoint": _reached(one.address)} for one in feeds
    ]
    return {
        "topic": VOEVENTS,
        "endpoints": {name: _reached(at) for name, at in doors.items()} | metrics_at(metrics_port),
        "capabilities": {"ivoid": settings.ivoid, "feeds": listed},
    }


def _reached(at: Address) -> str:
    return reached_at(at.host, at.port)


@contextmanager
def _page(gateway: Gateway, registry: CollectorRegistry, port: int) -> Iterator[None]:
    """Serve the pages of metrics and status within the block; none for port 0."""

    def html() -> tuple[str, bytes]:
        return "text/html; charset=utf-8", status_page(gateway.status.status())

    def as_json() -> tuple[str, bytes]:
        return "application/json", json.dumps(gateway.status.status()).encode()

    pages = {"/": html, "/status": html, "/status.json": as_json}
    page = MetricsPage(registry, port=port, healthy=gateway.healthy, pages=pages)
    if port:
        page.start()
    try:
        yield
    finally:
        page.stop()


def _check_command(spec: HandlerSpec) -> None:
    if spec.command and shutil.which(spec.command[0]) is None:
        raise ValueError(f"--cmd {spec.name!r}: there is no program {spec.command[0]!r} that may be run")
