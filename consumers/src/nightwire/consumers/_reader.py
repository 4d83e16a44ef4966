"""Read alerts: iterate, and what is done is kept."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from confluent_kafka import Message

from nightwire.consumers._decoding import Decoding
from nightwire.consumers._group import GroupSource
from nightwire.consumers._plan import Plan, Start
from nightwire.consumers._received import ReceivedAlert
from nightwire.consumers._source import Source
from nightwire.core.endpoints import Endpoints, find_endpoints
from nightwire.core.kafka import consumer, properties
from nightwire.schemas import AlertDecoder, RegistryAwayError, SchemaError, SchemaRegistry

log = logging.getLogger("nightwire.consumers")

TICK = 0.2
"""Longest time without a look at the clock and at whether to stop. [s]"""

REGISTRY_PATIENCE = 60.0
"""How long a registry that is away is asked again. [s]"""

SESSION_TIMEOUT = 10_000
"""After a crash, how long the group waits for the dead member. [ms]  Kafka's default is 45,000."""

FIRST_ONES = 10
"""So many undecodable records are logged one by one, then each thousandth."""


@dataclass(frozen=True)
class BadRecord:
    """A record that holds no alert."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    reason: str


def _membership() -> dict[str, int]:
    """Return how soon Kafka gives a dead member's partitions to others, unless ``KAFKA_*`` says so."""
    return {} if "session.timeout.ms" in properties() else {"session_timeout_ms": SESSION_TIMEOUT}


def _never() -> bool:
    return False


class AlertReader:
    """Read the alerts of some topics, one after the other.

    Without a group a reader sees every partition, begins live and keeps no position.  With one, the
    group's members share the partitions and go on where the group was: an alert counts as done when the
    next one is asked for, or when the ``with`` block is left without an exception.  After a crash the
    alerts that were not done come again; drop duplicates by `ReceivedAlert.origin`.  A group that was
    never here begins with the oldest alert that Kafka has.

    Iteration ends after *limit* alerts, after *timeout* without one, at the end without *follow*, and
    never otherwise.  Use it from one thread.

    Args:
        topics: One name, or several.
        group: Name of the consumer group.
        bootstrap: Kafka's address; by default ``KAFKA_BOOTSTRAP_SERVERS``, else the running embedded stack's.
        registry: URL of the schema registry; by default ``NIGHTWIRE_SCHEMA_REGISTRY``, else the stack's.
        since: Begin with what was written so long ago, or at that time; for a group only where it
            was never before.
        last: Begin with the newest so many of each topic, by time, the oldest of them first.
        start: ``"beginning"`` or ``"live"``; by default live, and the beginning for a new group and
            without *follow*.
        follow: Wait for more at the end; without it, stop at what was the end at the beginning.
        limit: Stop after so many alerts.
        timeout: Longest wait for the next alert. [s]
        survey: The alerts' survey, where neither a header nor the topic's name tells.
        on_bad: Called with each record that holds no alert, before it counts as done.
        stopped: Asked several times a second whether to stop.
        commit_interval: Time between a group's commits. [s]

    Attributes:
        count: Alerts handed out.
        undecodable: Records that held no alert: logged, given to *on_bad*, and passed over.

    Raises:
        ValueError: Arguments that exclude each other.
        NoStackError: No Kafka is named, and none runs here.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        *,
        group: str | None = None,
        bootstrap: str | None = None,
        registry: str | None = None,
        since: timedelta | datetime | None = None,
        last: int | None = None,
        start: Start | None = None,
        follow: bool = True,
        limit: int | None = None,
        timeout: float | None = None,
        survey: str | None = None,
        on_bad: Callable[[BadRecord], None] | None = None,
        stopped: Callable[[], bool] = _never,
        commit_interval: float = 1.0,
    ) -> None:
        names = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
        self._plan = Plan(names, group, since, last, start, follow)
        self._endpoints: Endpoints = find_endpoints(bootstrap, registry)
        self._limit, self._timeout = limit, timeout
        self._survey, self._on_bad, self._stopped = survey, on_bad, stopped
        self._commit_interval = commit_interval
        self._source: Source | None = None
        self._pending: Message | None = None
        self.count = self.undecodable = self._expired = 0

    @property
    def expired(self) -> int:
        """Records that Kafka had deleted before they were read."""
        return self._expired + (0 if self._source is None else self._source.expired)

    def open(self) -> Self:
        """Connect, and find where to begin; iteration does so by itself.

        Raises:
            TopicError: A topic does not exist; the message names those that do.
            KafkaException: Kafka cannot be reached.
        """
        if self._source is None:
            self._registry = SchemaRegistry(self._endpoints.schema_registry)
            self._decoding = Decoding(AlertDecoder(self._registry), survey_name=self._survey)
            self._source = self._connect()
        return self

    def close(self) -> None:
        """Commit what is done, and leave.  The alert handed out last is not done."""
        if self._source is not None:
            source, self._source, self._pending = self._source, None, None
            self._expired += source.expired
            source.close()
            self._registry.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish()
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ReceivedAlert:
        self.open()
        self._finish()
        source = self._source
        asked = time.monotonic()
        while source is not None and not self._over(source, asked):
            message = source.poll(self._tick(asked))
            if message is not None and (received := self._received(source, message)) is not None:
                self._pending = message
                self.count += 1
                return received
        self._commit()
        raise StopIteration

    def _connect(self) -> Source:
        bootstrap, plan = self._endpoints.kafka, self._plan
        client = consumer(bootstrap, group=plan.group, enable_partition_eof=True, **_membership())
        source = (
            Source(client, plan)
            if plan.group is None
            else GroupSource(client, plan, commit_interval=self._commit_interval)
        )
        try:
            source.open()
        except BaseException:
            client.close()
            raise
        return source

    def _finish(self) -> None:
        """The alert handed out last is done."""
        if self._pending is not None and self._source is not None:
            self._source.done(self._pending)
        self._pending = None

    def _commit(self) -> None:
        if self._source is not None:
            self._source.commit()

    def _over(self, source: Source, asked: float) -> bool:
        return (
            self._stopped()
            or (self._limit is not None and self.count >= self._limit)
            or (not self._plan.follow and source.at_end)
            or (self._timeout is not None and time.monotonic() - asked >= self._timeout)
        )

    def _tick(self, asked: float) -> float:
        left = TICK if self._timeout is None else asked + self._timeout - time.monotonic()
        return max(0.0, min(TICK, left))

    def _received(self, source: Source, message: Message) -> ReceivedAlert | None:
        """Return the alert in *message*; None where there is none, which is said and counted."""
        try:
            return self._decoded(message)
        except RegistryAwayError:
            raise
        except SchemaError as error:
            self._pass_over(message, str(error))
            source.done(message)
            return None

    def _decoded(self, message: Message) -> ReceivedAlert:
        patience = REGISTRY_PATIENCE if self._endpoints.schema_registry else 0.0
        deadline = time.monotonic() + patience
        while True:
            try:
                return self._decoding.receive(message)
            except RegistryAwayError as error:
                if self._stopped() or time.monotonic() >= deadline:
                    where = f"{message.topic()}[{message.partition()}]@{message.offset()}"
                    raise RegistryAwayError(f"{where} waits for its schema: {error}") from error
                log.warning("waiting for the schema registry: %s", error)
                time.sleep(1)

    def _pass_over(self, message: Message, reason: str) -> None:
        bad = BadRecord(
            str(message.topic()), message.partition() or 0, message.offset() or 0, message.value(), reason
        )
        self.undecodable += 1
        if self.undecodable <= FIRST_ONES or self.undecodable % 1000 == 0:
            where = f"{bad.topic}[{bad.partition}]@{bad.offset}"
            log.warning("%s cannot be decoded (%d so far): %s", where, self.undecodable, reason)
        if self._on_bad is not None:
            self._on_bad(bad)
