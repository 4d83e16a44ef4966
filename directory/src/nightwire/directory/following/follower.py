"""A site's log, followed in a thread, and what Kafka tells of the site beside it."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import (
    TRANSIENT_ERRORS,
    TopicPartition,
    consumer,
    end_offsets,
    read_until,
    retry_while_unavailable,
)
from nightwire.directory.following.log import MIRRORS, apply
from nightwire.directory.following.witnesses import AnotherKafkaError, Witnesses, check_cluster
from nightwire.directory.model import SiteRows
from nightwire.schemas.topics import DIRECTORY

log = logging.getLogger("nightwire.directory")

BATCH = 2000
"""Most records between two states that questions see."""
POLL = 0.2
"""Longest wait for records. [s]"""
LOOK = 5.0
"""Time between two looks at topics and groups. [s]"""
ENDED = KafkaError._PARTITION_EOF


class Follower:
    """Keeps the rows of a site as its Kafka tells them.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        rows: The site's rows.
        registry: URL of its schema registry; empty for none.
        look: Time between two looks at topics and groups. [s]
        client: librdkafka's properties of who reads; None for ourselves.
        cluster: The Kafka that it has to be, by its id; empty for any.
    """

    def __init__(
        self,
        bootstrap: str,
        rows: SiteRows,
        registry: str = "",
        *,
        look: float = LOOK,
        client: Mapping[str, Any] | None = None,
        cluster: str = "",
    ) -> None:
        self._bootstrap, self.rows, self._registry, self._look = bootstrap, rows, registry, look
        self._client, self._cluster = client, cluster
        self._leave, self._caught_up, self._astray = (threading.Event() for _ in range(3))
        self._threads = [
            threading.Thread(
                target=self._forever, args=(work,), name=f"directory-{work.__name__}", daemon=True
            )
            for work in (self._follow, self._observe)
        ]

    @property
    def ready(self) -> bool:
        """Whether the log was read to its end."""
        return self._caught_up.is_set()

    def start(self) -> None:
        """Begin to follow."""
        for thread in self._threads:
            thread.start()

    def wait(self, timeout: float) -> bool:
        """Wait at most *timeout* [s] for the end of the log; return whether it was reached."""
        return self._caught_up.wait(timeout)

    def leave(self) -> None:
        """Begin to stop following."""
        self._leave.set()

    def stop(self, patience: float = 10.0) -> None:
        """Stop following, and wait for that, for twice *patience* [s] at most."""
        self.leave()
        for thread in self._threads:
            thread.join(patience)

    def _forever(self, work: Callable[[], None]) -> None:
        while not self._leave.is_set():
            try:
                work()
            except sqlite3.ProgrammingError:  # the view was closed while Kafka let us wait
                if not self._leave.is_set():
                    raise
            except KafkaException as error:
                log.warning("Kafka at %s: %s; trying again", self._bootstrap, error.args[0])
                self._leave.wait(1.0)

    def _follow(self) -> None:
        """Read the log from its beginning, and on as it grows, until told to leave."""
        reader = consumer(self._bootstrap, client=self._client, enable_partition_eof=True)
        try:
            todo = assign(reader, self._cluster)
            self._astray.clear()
            self._caught_up.clear()
            self.rows.clear()
            while not self._leave.is_set() and not self._astray.is_set():
                messages = reader.consume(BATCH, POLL)
                self._note(messages)
                todo -= reached(messages)
                if not todo and not self._caught_up.is_set():
                    self.rows.caught_up()
                    self._caught_up.set()
        finally:
            reader.close()

    def _note(self, messages: list[Message]) -> None:
        if said := [message for message in messages if message.error() is None]:
            with self.rows.batch():
                for message in said:
                    apply(self.rows, message)

    @cached_property
    def _witnesses(self) -> Witnesses:
        return Witnesses(self._bootstrap, self.rows, self._registry, self._client, self._cluster)

    def _observe(self) -> None:
        """Look at topics and groups, until told to leave."""
        while not self._leave.is_set():
            if self._caught_up.is_set():
                try:
                    self._witnesses.observe(time.monotonic())
                except AnotherKafkaError:
                    self._astray.set()
                    raise
            self._leave.wait(self._look if self._caught_up.is_set() else POLL)


def assign(reader: Consumer, cluster: str = "") -> set[TopicPartition]:
    """Let *reader* read what is mirrored from its beginning; return the partitions.

    Raises:
        AnotherKafkaError: It is another Kafka than *cluster*, where that is not empty.
        KafkaException: Kafka does not answer, we may not read the directory, or there is none.
    """
    found = reader.list_topics(timeout=10)
    check_cluster(found, cluster)
    known = found.topics
    if DIRECTORY not in known:
        with suppress(KafkaException):
            end_offsets(reader, [DIRECTORY])
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"no topic {DIRECTORY} to be read"))
    wanted = {(topic, part) for topic in MIRRORS if topic in known for part in known[topic].partitions}
    reader.assign([TopicPartitionOffset(*partition, OFFSET_BEGINNING) for partition in wanted])
    return wanted


def reached(messages: list[Message]) -> set[TopicPartition]:
    """Return the partitions whose ends are among *messages*.

    Raises:
        KafkaException: Kafka gives no more records.
    """
    found = set()
    for message in messages:
        if (error := message.error()) is None:
            continue
        if error.code() == ENDED:
            found.add((str(message.topic()), message.partition() or 0))
        elif error.code() not in TRANSIENT_ERRORS:
            raise KafkaException(error)
    return found


def load(bootstrap: str, rows: SiteRows, registry: str = "", *, timeout: float = 30.0) -> None:
    """Read a site as it is now into *rows*, without following it.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        rows: The site's rows.
        registry: URL of its schema registry; empty for none.
        timeout: Longest wait for the next record. [s]

    Raises:
        KafkaException: Kafka cannot be reached, or refuses.
    """
    reader = consumer(bootstrap, enable_partition_eof=True)
    try:
        there = sorted({topic for topic, _ in assign(reader)})
        with rows.batch():
            for message in read_until(reader, end_offsets(reader, there), patience=timeout):
                apply(rows, message)
    finally:
        reader.close()
    witnesses = Witnesses(bootstrap, rows, registry)
    retry_while_unavailable(lambda: witnesses.observe(time.monotonic()))
