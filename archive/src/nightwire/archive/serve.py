"""`nightwire archive serve`: the consumer, the HTTP API, and maintenance in one process."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Thread
from typing import Any

import uvicorn
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry, Gauge

from nightwire.archive.http_api import application
from nightwire.archive.maintenance import Maintenance, Retention
from nightwire.archive.querying import Archive
from nightwire.archive.storage import FencedError, StorageError, Store
from nightwire.archive.writing import (
    GROUP,
    RETRY_DELAY,
    SCHEDULES,
    ArchiveAccounts,
    ArchiveConsumer,
    Batching,
    SurveyWriter,
    is_transient,
)
from nightwire.core.accounting import read_accounts
from nightwire.core.kafka import (
    DeliveryError,
    Writer,
    admin,
    cluster_id,
    consumer,
    ensure_topics,
    enter,
    login,
    producer,
)
from nightwire.core.presence import HttpService, registered, request_counter
from nightwire.core.runtime import Stop, setup_logging
from nightwire.schemas import RegistryAwayError, SchemaRegistry
from nightwire.schemas.serving import run
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, settings

log = logging.getLogger("nightwire.archive")

CONSUMER_SETTINGS: Mapping[str, Any] = {
    "partition_assignment_strategy": "cooperative-sticky",
    "session_timeout_ms": 10_000,
    "topic_metadata_refresh_interval_ms": 10_000,
    "queued_max_messages_kbytes": 8 << 10,
    "isolation_level": "read_committed",
    "enable_partition_eof": True,
}
"""New topics are found soon, and little is fetched ahead of the schedule."""
SHUTDOWN_TIMEOUT = 20.0
"""Longest wait at the end for a write that is under way. [s]"""
GAUGES = {
    "nightwire_archive_records": "Records that were archived since the start.",
    "nightwire_archive_dead_letters": "Of these, records that are no alerts.",
    "nightwire_archive_expired_records": "Records that Kafka had deleted before they were archived.",
    "nightwire_archive_waiting_records": "Records that are taken and not yet written.",
    "nightwire_archive_newest_timestamp_seconds": "When the newest row came; 0 until one is written.",
}


@dataclass(frozen=True, kw_only=True)
class ServeSettings(HttpService):
    """The settings of `nightwire archive serve`.

    Attributes:
        store: The archive's folder or bucket.
        schedule: Name of the schedule.
        rate: That of the schedule `rate`. [byte/s]
        batching: The limits of a batch.
        retention: How long rows and packets are kept.
        compact_every: Time between two compactions; 0 for none. [s]
    """

    store: Store
    schedule: str = "state"
    rate: int = 10_000_000
    batching: Batching = field(default_factory=Batching)
    retention: Retention = field(default_factory=Retention)
    compact_every: float = 600.0


def serve(asked: ServeSettings) -> None:
    """Archive and answer until a signal.

    Raises:
        ArchiveError: A topic was made anew.
        TLSError: The door's certificate cannot be used.
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.archive")
    kafka = enter(asked.where.kafka)
    collected = CollectorRegistry()
    with ExitStack() as exits:
        archive = exits.enter_context(Archive(asked.store.url))
        answered = request_counter(collected, "nightwire_archive_requests_total")
        app = application(archive, asked.access(), answered)
        servers = asked.servers(app, app)
        consumer = RestartingConsumer(partial(opened_consumer, asked, kafka))
        failures = exits.enter_context(running(consumer, partial(stop_servers, servers)))
        maintenance = Maintenance(asked.store, asked.retention)
        add_gauges(collected, consumer, maintenance)
        healthy = asked.metrics_page(
            collected, servers, lambda: consumer.is_running and not failures, lambda: maintenance.report
        )
        exits.enter_context(healthy)
        exits.enter_context(maintained(maintenance, asked.compact_every))
        about = {"archive": asked.store.url, "schedule": asked.schedule}
        exits.enter_context(registered(kafka, "archive", endpoints=asked.endpoints, capabilities=about))
        log.info("the archive in %s on %s", asked.store, asked.url)
        run(servers)
    for failure in failures:
        raise failure
    log.info("left")


def stop_servers(servers: Iterable[uvicorn.Server]) -> None:
    """Have *servers* finish their answers, and exit."""
    for server in servers:
        server.should_exit = True


@contextmanager
def opened_consumer(asked: ServeSettings, kafka: str) -> Iterator[ArchiveConsumer]:
    """Yield the consumer, with clients that are closed at the end."""
    ensure_topics(kafka, [settings(ACCOUNTS), settings(DEAD_LETTERS)])
    registry = SchemaRegistry(
        asked.where.schema_registry, cluster_id=partial(cluster_id, kafka), login=login(kafka)
    )
    out = producer(kafka)
    with registry:
        accounts = ArchiveAccounts(Writer(out), read_accounts(kafka))
        member = consumer(kafka, group=GROUP, on_error=registry.doubt, **CONSUMER_SETTINGS)
        schedule = SCHEDULES[asked.schedule](asked.rate)
        writer_of = cache(lambda survey: SurveyWriter(asked.store, survey, registry))
        try:
            yield ArchiveConsumer(member, admin(kafka), writer_of, accounts, schedule, asked.batching)
        finally:
            out.purge()  # accounts that Kafka did not take yet: the next process counts the rows


class RestartingConsumer:
    """A consumer that is restarted, with new clients, after Kafka or the store was away too long.

    As in a new process, rows and accounts go on where the tables end.

    Args:
        opened: Opens the consumer and its clients.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[ArchiveConsumer]]) -> None:
        self._opened = opened
        self._consumer: ArchiveConsumer | None = None
        self._totals: Sequence[float] = (0.0,) * len(GAUGES)

    def run(self, stop: Stop) -> None:
        """Archive until *stop*.

        Raises:
            KafkaException: Kafka refuses.
            ArchiveError: A topic was made anew.
        """
        while not stop.is_set():
            try:
                with self._opened() as consumer:
                    self._consumer = consumer
                    consumer.run(stop)
            except (KafkaException, DeliveryError, StorageError, FencedError, RegistryAwayError) as error:
                if isinstance(error, KafkaException) and not is_transient(error.args[0]):
                    raise
                log.warning("begins anew in %g s, from where the rows end: %s", RETRY_DELAY, error)
                *counted, _, newest = self.gauge_values
                self._totals, self._consumer = (*counted, 0.0, newest), None
                stop.wait(RETRY_DELAY)

    @property
    def is_running(self) -> bool:
        """Whether it archives; False while it waits for its next start."""
        return self._consumer is not None

    @property
    def gauge_values(self) -> Sequence[float]:
        """The values of `GAUGES`."""
        if (now := self._consumer) is None:
            return self._totals
        archived, dead, expired, _, newest = self._totals
        accounts = now.accounts
        counted = archived + accounts.archived, dead + accounts.dead_lettered, expired + now.expired
        return (*counted, now.unwritten, max(newest, now.newest))


@contextmanager
def running(consumer: RestartingConsumer, on_end: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Run *consumer* in a thread within the block; yield the list that its error is added to."""
    stop, failures = Stop(), list[BaseException]()

    def work() -> None:
        try:
            consumer.run(stop)
        except BaseException as error:  # noqa: BLE001  (raised by the main thread; Rust's panics too)
            failures.append(error)
            on_end()

    thread = Thread(target=work, name="archive-consumer")
    thread.start()
    try:
        yield failures
    finally:
        stop.set()
        thread.join(SHUTDOWN_TIMEOUT)
        if thread.is_alive():  # Kafka, or the store, is away: what is not written is read again
            log.warning("not done %g s after the signal to stop: ending at once", SHUTDOWN_TIMEOUT)
            os._exit(1)


@contextmanager
def maintained(maintenance: Maintenance, pause: float) -> Iterator[None]:
    """Maintain the tables within the block, with a *pause* between two runs; 0 for never. [s]"""
    stop = Stop()

    def repeat() -> None:
        while not stop.wait(pause):
            if fewer := maintenance.run():
                log.info("%d files fewer", fewer)
            for why in maintenance.errors:
                log.error("not maintained, tried again in %g s: %s", pause, why)

    thread = Thread(target=repeat, name="archive-maintenance", daemon=True)
    if pause:
        thread.start()
    try:
        yield
    finally:
        stop.set()


def add_gauges(registry: CollectorRegistry, consumer: RestartingConsumer, maintenance: Maintenance) -> None:
    """Add the gauges of *consumer* and *maintenance* to a registry."""
    for n, (name, text) in enumerate(GAUGES.items()):
        Gauge(name, text, registry=registry).set_function(partial(lambda n: consumer.gauge_values[n], n))
    failed = "Tables that the last maintenance could not join or shorten."
    Gauge("nightwire_archive_untended_tables", failed, registry=registry).set_function(
        lambda: len(maintenance.errors)
    )
    done = "When all tables were last joined and shortened; 0 until they are."
    Gauge("nightwire_archive_tended_timestamp_seconds", done, registry=registry).set_function(
        lambda: maintenance.completed_at
    )
