"""The gateway as a command: its options read, its process run."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from nightwire.core.endpoints import NoStackError, find_endpoints
from nightwire.core.process import MetricsPage, setup_logging, stopping
from nightwire.gateway._access import AccessList
from nightwire.gateway._beginning import StateInUseError
from nightwire.gateway._gateway import Gateway, GatewayFailedError
from nightwire.gateway._settings import Settings, read_address
from nightwire.schemas.topics import settings as topic_settings

log = logging.getLogger(__name__)


def read_settings(
    *,
    bootstrap: str | None,
    registry: str | None,
    authors: str,
    subscribers: str,
    remotes: tuple[str, ...],
    feeds: tuple[str, ...],
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
    for feed in feeds:
        _check_feed(feed)
    if feeds and not found.schema_registry:
        raise ValueError("a --feed of alerts needs the schema registry: name it with --registry URL")
    settings = Settings(
        bootstrap=found.kafka,
        registry=found.schema_registry,
        authors=read_address(authors, 8098),
        subscribers=read_address(subscribers, 8099),
        remotes=tuple(read_address(text, 8099) for text in remotes),
        feeds=tuple(dict.fromkeys(feeds)),
        **rest,
    )
    AccessList(settings.author_allow)
    AccessList(settings.subscriber_allow)
    return replace(settings, state=settings.state.absolute())


def serve_until_stopped(settings: Settings, metrics_port: int) -> int:
    """Run a gateway until it is told to stop; return the exit status."""
    setup_logging("nightwire.gateway")
    registry = CollectorRegistry()
    gateway = Gateway(settings, registry)
    page = MetricsPage(registry, port=metrics_port, healthy=gateway.healthy) if metrics_port else None
    with stopping() as stop:
        try:
            if page is not None:
                page.start()
            asyncio.run(gateway.run(stop))
        except (GatewayFailedError, StateInUseError, OSError) as error:
            log.error("%s", error)  # noqa: TRY400  (the cause is logged where it happened)
            return 1
        finally:
            if page is not None:
                page.stop()
    return 0


def _check_feed(feed: str) -> None:
    if not feed.startswith("filter."):
        raise ValueError(f"--feed {feed!r}: only a filter's topic, filter.OWNER.NAME, can be a feed")
    topic_settings(feed)
