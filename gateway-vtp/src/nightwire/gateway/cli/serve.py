"""The gateway as a command: its options read, its process run."""

import asyncio
import json
import logging
import os
import shutil
import time
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from nightwire.core.runtime import MetricsPage, NoStackError, find_endpoints, setup_logging, stopping
from nightwire.gateway.cli.gcn_options import gcn_properties
from nightwire.gateway.cli.log_limits import RateLimitFilter
from nightwire.gateway.eventlog.state_folder import StateError
from nightwire.gateway.fanout.feed import Feed
from nightwire.gateway.gateway import Gateway, GatewayFailedError
from nightwire.gateway.gateway_settings import Settings
from nightwire.gateway.handlers.plugins import PluginError, installed_plugins
from nightwire.gateway.handlers.settings import (
    PRINT_EVENT,
    SAVE_EVENT,
    HandlerSettings,
    HandlerSpec,
    read_handlers,
)
from nightwire.gateway.ingest.settings import GcnSettings
from nightwire.gateway.net.addresses import read_address
from nightwire.gateway.net.open_files import allow_open_files
from nightwire.gateway.net.tls import ServerTLS
from nightwire.gateway.signing.requirements import SignatureSettings
from nightwire.gateway.signing.signing_key import SigningError
from nightwire.gateway.signing.trust_policy import PolicyError, read_policy
from nightwire.gateway.status.page import status_page

log = logging.getLogger(__name__)


def read_settings(
    *,
    bootstrap: str | None,
    registry: str | None,
    authors: str,
    remotes: tuple[str, ...],
    feeds: tuple[Feed, ...],
    handlers: HandlerSettings,
    signatures: SignatureSettings,
    **rest: Any,
) -> Settings:
    """Return the settings that the options say.

    Raises:
        ValueError: One of them makes no sense, or there is no Kafka; the message says which.
    """
    try:
        found = find_endpoints(bootstrap, registry)
    except NoStackError as error:
        raise ValueError(str(error)) from error
    if any(feed.has_alerts for feed in feeds) and not found.schema_registry:
        raise ValueError("a feed of alerts needs the schema registry: name it with --registry URL")
    settings = Settings(
        bootstrap=found.kafka,
        registry=found.schema_registry,
        authors=read_address(authors, 8098),
        remotes=tuple(read_address(text, 8099) for text in remotes),
        feeds=feeds,
        handlers=handlers,
        signatures=signatures,
        **rest,
    )
    _check_tls(settings)
    return replace(settings, state=settings.state.absolute())


def read_gcn_settings(
    *, gcn: bool, gcn_topics: tuple[str, ...], gcn_bootstrap: str, gcn_start: str
) -> GcnSettings | None:
    """Return what is read from GCN; None where nothing is.

    Raises:
        ValueError: There are no credentials for it.
    """
    if not gcn:
        return None
    oldest = gcn_start == "oldest"
    return GcnSettings(gcn_bootstrap, gcn_topics, oldest=oldest, properties=gcn_properties(os.environ))


def read_handler_settings(
    *,
    commands: tuple[str, ...],
    print_event: bool,
    save_event: bool,
    save_event_directory: str | None,
    plugins: tuple[str, ...],
    plugin_options: tuple[str, ...],
    **rest: Any,
) -> HandlerSettings:
    """Return what the options say of handlers.

    Raises:
        ValueError: One of them makes no sense; the message says which.
    """
    named = [*plugins, *[PRINT_EVENT] * print_event, *[SAVE_EVENT] * save_event]
    options = list(plugin_options)
    if save_event_directory is not None:
        if SAVE_EVENT not in named:
            raise ValueError("--save-event-directory is of use with --save-event only")
        options.append(f"{SAVE_EVENT}.directory={save_event_directory}")
    specs = read_handlers(commands, named, options, installed_plugins())
    for spec in specs:
        _check_command(spec)
    return HandlerSettings(specs, **rest)


def check_signature_settings(settings: SignatureSettings) -> SignatureSettings:
    """Return *settings*.

    Raises:
        ValueError: They make no sense; the message says why.
    """
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
    """Run a gateway until it is told to stop; return the exit status."""
    setup_logging("nightwire.gateway")
    for handler in logging.getLogger().handlers:
        handler.addFilter(RateLimitFilter(time.monotonic))
    allow_open_files((1 + len(settings.feeds)) * settings.doors.limits.connections)
    registry = CollectorRegistry()
    gateway = Gateway(settings, registry)
    page = _page(gateway, registry, metrics_port) if metrics_port else None
    with stopping() as stop:
        try:
            if page is not None:
                page.start()
            asyncio.run(gateway.run(stop))
        except (GatewayFailedError, PluginError, SigningError, StateError, OSError) as error:
            log.error("%s", error)  # noqa: TRY400  (the cause is logged where it happened)
            return 1
        finally:
            if page is not None:
                page.stop()
    return 0


def _page(gateway: Gateway, registry: CollectorRegistry, port: int) -> MetricsPage:
    def for_people() -> tuple[str, bytes]:
        return "text/html; charset=utf-8", status_page(gateway.board.status())

    def for_programs() -> tuple[str, bytes]:
        return "application/json", json.dumps(gateway.board.status()).encode()

    pages = {"/": for_people, "/status": for_people, "/status.json": for_programs}
    return MetricsPage(registry, port=port, healthy=gateway.healthy, pages=pages)


def _check_tls(settings: Settings) -> None:
    if settings.authors.tls or any(feed.address.tls for feed in settings.feeds):
        ServerTLS(settings.doors.tls)


def _check_command(spec: HandlerSpec) -> None:
    if spec.command and shutil.which(spec.command[0]) is None:
        raise ValueError(f"--cmd {spec.name!r}: there is no program {spec.command[0]!r} that may be run")
