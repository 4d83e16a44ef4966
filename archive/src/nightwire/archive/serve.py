"""`nightwire archive serve`: the loop that writes behind, HTTP in front, upkeep beside."""

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

from nightwire.archive.asking import Archive
from nightwire.archive.serving import application
from nightwire.archive.storage import FencedError, StorageError, Store
from nightwire.archive.upkeep import Retention, Upkeep
from nightwire.archive.writing import (
    GROUP,
    PATIENCE,
    SCHEDULES,
    Batching,
    Drain,
    Ledger,
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

MEMBER: Mapping[str, Any] = {
    "partition_assignment_strategy": "cooperative-sticky",
    "session_timeout_ms": 10_000,
    "topic_metadata_refresh_interval_ms": 10_000,
    "queued_max_messages_kbytes": 8 << 10,
    "isolation_level": "read_committed",
    "enable_partition_eof": True,
}
"""Soon hears of new topics, and fetches little ahead of its schedule."""
LEAVE = 20.0
"""Longest wait at the end for what is being written. [s]"""
GAUGES = {
    "nightwire_archive_records": "Records that were archived since the start.",
    "nightwire_archive_dead_letters": "Of these, records that are no alerts.",
    "nightwire_archive_expired_records": "Records that Kafka had deleted before they were archived.",
    "nightwire_archive_waiting_records": "Records that are taken and not yet written.",
    "nightwire_archive_newest_timestamp_seconds": "When the newest row came; 0 until one is written.",
}


@dataclass(frozen=True, kw_only=True)
class ServeSettings(HttpService):
    """What an archive was asked for.

    Attributes:
        store: The archive's folder or bucket.
        schedule: Name of when records are taken.
        rate: Most bytes a second, for the schedule that has a rate.
        batching: When they are written.
        retention: How long they are kept.
        upkeep: Time between two compactions; 0 for none. [s]
    """

    store: Store
    schedule: str = "state"
    rate: int = 10_000_000
    batching: Batching = field(default_factory=Batching)
    retention: Retention = field(default_factory=Retention)
    upkeep: float = 600.0


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
        drain = LastingDrain(partial(draining, asked, kafka))
        failures = exits.enter_context(working(drain, partial(end, servers)))
        upkeep = Upkeep(asked.store, asked.retention)
        count(collected, drain, upkeep)
        healthy = asked.metrics_page(
            collected, servers, lambda: drain.is_at_work and not failures, lambda: upkeep.said
        )
        exits.enter_context(healthy)
        exits.enter_context(seen_to(upkeep, asked.upkeep))
        about = {"archive": asked.store.url, "schedule": asked.schedule}
        exits.enter_context(registered(kafka, "archive", endpoints=asked.endpoints, capabilities=about))
        log.info("the archive in %s on %s", asked.store, asked.url)
        run(servers)
    for failure in failures:
        raise failure
    log.info("left")


def end(servers: Iterable[uvicorn.Server]) -> None:
    """Have *servers* finish what they answer, and leave."""
    for server in servers:
        server.should_exit = True


@contextmanager
def draining(asked: ServeSettings, kafka: str) -> Iterator[Drain]:
    """Yield the loop, its clients open."""
    ensure_topics(kafka, [settings(ACCOUNTS), settings(DEAD_LETTERS)])
    registry = SchemaRegistry(
        asked.where.schema_registry, cluster_id=partial(cluster_id, kafka), login=login(kafka)
    )
    accounts = producer(kafka)
    with registry:
        ledger = Ledger(Writer(accounts), read_accounts(kafka))
        member = consumer(kafka, group=GROUP, on_error=registry.doubt, **MEMBER)
        schedule = SCHEDULES[asked.schedule](asked.rate)
        writer_of = cache(lambda survey: SurveyWriter(asked.store, survey, registry))
        try:
            yield Drain(member, admin(kafka), writer_of, ledger, schedule, asked.batching)
        finally:
            accounts.purge()  # what Kafka did not take yet is counted from the rows by who comes next


class LastingDrain:
    """A loop that begins anew, its clients too, where Kafka or the store was away for too long.

    That is what another process would do after this one had died: rows and accounts go on where
    the tables end.

    Args:
        opened: Opens the loop and its clients.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[Drain]]) -> None:
        self._opened = opened
        self._drain: Drain | None = None
        self._before: Sequence[float] = (0.0,) * len(GAUGES)

    def run(self, stop: Stop) -> None:
        """Archive until *stop*.

        Raises:
            KafkaException: Kafka refuses.
            ArchiveError: A topic was made anew.
        """
        while not stop.is_set():
            try:
                with self._opened() as drain:
                    self._drain = drain
                    drain.run(stop)
            except (KafkaException, DeliveryError, StorageError, FencedError, RegistryAwayError) as error:
                if isinstance(error, KafkaException) and not is_transient(error.args[0]):
                    raise
                log.warning("begins anew in %g s, from where the rows end: %s", PATIENCE, error)
                *counted, _, newest = self.shown
                self._before, self._drain = (*counted, 0.0, newest), None
                stop.wait(PATIENCE)

    @property
    def is_at_work(self) -> bool:
        """Whether Kafka and the store let it archive: it does not wait to begin anew."""
        return self._drain is not None

    @property
    def shown(self) -> Sequence[float]:
        """The values of `GAUGES`."""
        if (now := self._drain) is None:
            return self._before
        archived, dead, expired, _, newest = self._before
        ledger = now.ledger
        counted = archived + ledger.archived, dead + ledger.dead, expired + now.expired
        return (*counted, now.waiting, max(newest, now.newest))


@contextmanager
def working(drain: LastingDrain, on_end: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Run *drain* in a thread within the block; yield why it ended by itself, after *on_end*."""
    stop, failures = Stop(), list[BaseException]()

    def work() -> None:
        try:
            drain.run(stop)
        except BaseException as error:  # noqa: BLE001  (raised by the process's own thread; Rust's panics too)
            failures.append(error)
            on_end()

    thread = Thread(target=work, name="archive-drain")
    thread.start()
    try:
        yield failures
    finally:
        stop.set()
        thread.join(LEAVE)
        if thread.is_alive():  # Kafka, or the store, is away: what is not written is read again
            log.warning("not done %g s after the signal to stop: ending at once", LEAVE)
            os._exit(1)


@contextmanager
def seen_to(upkeep: Upkeep, pause: float) -> Iterator[None]:
    """See to the tables within the block, with a *pause* between two times; 0 for never. [s]"""
    stop = Stop()

    def look() -> None:
        while not stop.wait(pause):
            if fewer := upkeep.run():
                log.info("%d files fewer", fewer)
            for why in upkeep.failed:
                log.error("not seen to, tried again in %g s: %s", pause, why)

    thread = Thread(target=look, name="archive-upkeep", daemon=True)
    if pause:
        thread.start()
    try:
        yield
    finally:
        stop.set()


def count(registry: CollectorRegistry, drain: LastingDrain, upkeep: Upkeep) -> None:
    """Let Prometheus see what is archived, and whether it is seen to."""
    for at, (name, text) in enumerate(GAUGES.items()):
        Gauge(name, text, registry=registry).set_function(partial(lambda at: drain.shown[at], at))
    failed = "Tables that the last upkeep could not join or shorten."
    Gauge("nightwire_archive_untended_tables", failed, registry=registry).set_function(
        lambda: len(upkeep.failed)
    )
    done = "When all tables were last joined and shortened; 0 until they are."
    Gauge("nightwire_archive_tended_timestamp_seconds", done, registry=registry).set_function(
        lambda: upkeep.done
    )
