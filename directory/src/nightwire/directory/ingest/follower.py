"""The follower of a site: its log in one thread, its topics and groups in another."""

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
    error_text,
    read_until,
    retry_while_unavailable,
)
from nightwire.directory.ingest.cluster_observer import ClusterObserver, WrongClusterError, check_cluster
from nightwire.directory.ingest.log import MIRRORED_TOPICS, apply
from nightwire.directory.model import SiteRows
from nightwire.schemas.topics import DIRECTORY

log = logging.getLogger("nightwire.directory")

BATCH = 2000
"""Most records of one transaction of the rows."""
POLL = 0.2
"""Longest wait for records. [s]"""
OBSERVE_INTERVAL = 5.0
"""Time between two observations of topics and groups. [s]"""
END_OF_PARTITION = KafkaError._PARTITION_EOF


class Follower:
    """Keeps the rows of a site as its Kafka tells them.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        rows: The site's rows.
        registry: URL of its schema registry; empty for none.
        interval: Time between two observations of topics and groups. [s]
        client: librdkafka's properties of the reader; None for our own.
        cluster: The expected Kafka's id; empty for any.
    """

    def __init__(
        self,
        bootstrap: str,
        rows: SiteRows,
        registry: str = "",
        *,
        interval: float = OBSERVE_INTERVAL,
        client: Mapping[str, Any] | None = None,
        cluster: str = "",
    ) -> None:
        self._bootstrap, self.rows, self._registry, self._interval = bootstrap, rows, registry, interval
        self._client, self._cluster = client, cluster
        self._stopping, self._caught_up, self._wrong_cluster = (threading.Event() for _ in range(3))
        self._threads = [
            threading.Thread(
                target=self._run_until_stopped, args=(work,), name=f"directory-{work.__name__}", daemon=True
            )
            for work in (self._follow, self._observe)
        ]

    @property
    def ready(self) -> bool:
        """Whether the log was read to its end."""
        return self._caught_up.is_set()

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def wait(self, timeout: float) -> bool:
        """Wait at most *timeout* [s] for the end of the log; return whether it was reached."""
        return self._caught_up.wait(timeout)

    def request_stop(self) -> None:
        """Tell the threads to end."""
        self._stopping.set()

    def stop(self, patience: float = 10.0) -> None:
        """End the threads; wait at most twice *patience* [s] for them."""
        self.request_stop()
        for thread in self._threads:
            thread.join(patience)

    def _run_until_stopped(self, work: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except sqlite3.ProgrammingError:  # the view was closed while Kafka let us wait
                if not self._stopping.is_set():
                    raise
            except KafkaException as error:
                log.warning("Kafka at %s: %s; trying again", self._bootstrap, error_text(error))
                self._stopping.wait(1.0)

    def _follow(self) -> None:
        """Read the log from its beginning, and on as it grows, until told to stop."""
        with consumer(self._bootstrap, client=self._client, enable_partition_eof=True) as reader:
            unread = assign(reader, self._cluster)
            self._wrong_cluster.clear()
            self._caught_up.clear()
            self.rows.clear()
            while not self._stopping.is_set() and not self._wrong_cluster.is_set():
                messages = reader.consume(BATCH, POLL)
                self._apply_all(messages)
                unread -= partitions_at_end(messages)
                if not unread and not self._caught_up.is_set():
                    self.rows.caught_up()
                    self._caught_up.set()

    def _apply_all(self, messages: list[Message]) -> None:
        if said := [message for message in messages if message.error() is None]:
            with self.rows.batch():
                for message in said:
                    apply(self.rows, message)

    @cached_property
    def _observer(self) -> ClusterObserver:
        return ClusterObserver(self._bootstrap, self.rows, self._registry, self._client, self._cluster)

    def _observe(self) -> None:
        """Observe topics and groups, until told to stop."""
        while not self._stopping.is_set():
            if self._caught_up.is_set():
                try:
                    self._observer.observe(time.monotonic())
                except WrongClusterError:
                    self._wrong_cluster.set()
                    raise
            self._stopping.wait(self._interval if self._caught_up.is_set() else POLL)


def assign(reader: Consumer, cluster: str = "") -> set[TopicPartition]:
    """Assign the mirrored topics to *reader*, from their beginnings; return the partitions.

    Raises:
        WrongClusterError: It is another Kafka than *cluster*.
        KafkaException: Kafka does not answer, we may not read the directory, or there is none.
    """
    found = reader.list_topics(timeout=10)
    check_cluster(found, cluster)
    known = found.topics
    if DIRECTORY not in known:
        with suppress(KafkaException):
            end_offsets(reader, [DIRECTORY])
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"no topic {DIRECTORY} to be read"))
    mirrored = MIRRORED_TOPICS.keys() & known.keys()
    wanted = {(topic, number) for topic in mirrored for number in known[topic].partitions}
    reader.assign([TopicPartitionOffset(*partition, OFFSET_BEGINNING) for partition in wanted])
    return wanted


def partitions_at_end(messages: list[Message]) -> set[TopicPartition]:
    """Return the partitions whose ends are among *messages*.

    Raises:
        KafkaException: Kafka gives no more records.
    """
    found = set()
    for message in messages:
        if (error := message.error()) is None:
            continue
        if error.code() == END_OF_PARTITION:
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
    with consumer(bootstrap, enable_partition_eof=True) as reader:
        there = sorted({topic for topic, _ in assign(reader)})
        with rows.batch():
            for message in read_until(reader, end_offsets(reader, there), patience=timeout):
                apply(rows, message)
    observer = ClusterObserver(bootstrap, rows, registry)
    retry_while_unavailable(lambda: observer.observe(time.monotonic()))
