"""A member of a consumer group: records are delivered again until they are acknowledged."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from nightwire.core.kafka import CONSUMER, REFUSALS, TRANSIENT_ERRORS
from nightwire.directory.mediator.kafka_access import TIMEOUT, check_topic, kafka_refusal
from nightwire.schemas.serving import RefusedError

Cursor = Mapping[int, int]
"""By partition, the offset after the last record that is done."""

Paid = frozenset[tuple[int, int]]
"""Partitions and offsets of owed alerts that a slow link has got whole."""
NO_PAID: Paid = frozenset()

CURSOR = re.compile(r"(?:\d{1,9}:\d{1,18}(?:,\d{1,9}:\d{1,18})*)?", re.ASCII)
SPANS = re.compile(r"\d{1,9}:\d{1,18}-\d{1,18}(?:,\d{1,9}:\d{1,18}-\d{1,18})*", re.ASCII)
MAX_PAID = 10_000
"""Most owed alerts of one response."""
PROPERTIES: Mapping[str, Any] = {
    "queued.max.messages.kbytes": 4 << 10,
    "fetch.message.max.bytes": 1 << 20,
    "fetch.max.bytes": 4 << 20,
    "receive.message.max.bytes": (4 << 20) + (1 << 20),
    "auto.offset.reset": "earliest",
    "group.protocol": "classic",
    "session.timeout.ms": 10_000,
    "partition.assignment.strategy": "cooperative-sticky",
}
"""A slow reader's memory, a new group's beginning, and how its members share (as those of
`nightwire subscribe`, so that a group may have both)."""
IGNORED_ERRORS = TRANSIENT_ERRORS | {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError._PARTITION_EOF,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REBALANCE_IN_PROGRESS,
}
TRANSPORT_FAILURE = "Broker transport failure"
"""Part of the error of an interrupted login, as by a Kafka that stops: librdkafka tries again."""


def parse_cursor(text: str) -> Cursor:
    """Return the cursor of ``PARTITION:OFFSET,…``.

    Raises:
        RefusedError: It is malformed.
    """
    if not CURSOR.fullmatch(text):
        raise RefusedError(400, f"{text[:99]!r} is no PARTITION:OFFSET,…")
    pairs = [pair.partition(":") for pair in text.split(",") if pair]
    return {int(partition): int(offset) for partition, _, offset in pairs}


def parse_spans(text: str) -> Paid:
    """Return the offsets of ``PARTITION:FIRST-LAST,…``.

    Raises:
        RefusedError: It is malformed, or has too many offsets.
    """
    parts = (
        [tuple(map(int, re.split("[:-]", one))) for one in text.split(",")] if SPANS.fullmatch(text) else []
    )
    found = [(partition, range(first, last + 1)) for partition, first, last in parts]
    if (text and not found) or sum(len(one) for _, one in found) > MAX_PAID:
        raise RefusedError(400, f"{text[:99]!r} is no PARTITION:FIRST-LAST,…, or more than {MAX_PAID}")
    return frozenset((partition, offset) for partition, one in found for offset in one)


def format_cursor(done: Cursor) -> str:
    """Return *done* as `parse_cursor` reads it."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(done.items()))


class Session:
    """A member of *group* that reads *topic*.

    Args:
        client: librdkafka's properties, with the user's credentials.
        topic: Its name.
        group: Keeps the offsets.

    Raises:
        RefusedError: Kafka refuses the topic, or does not answer.
    """

    EXTRA: Mapping[str, Any] = {}
    """Further properties of the consumer."""

    def __init__(self, client: Mapping[str, Any], topic: str, group: str) -> None:
        self.topic, self.group, self.last_used = topic, group, time.monotonic()
        self.request_lock = asyncio.Lock()
        """Held by the request that reads."""
        self._lock = threading.Lock()
        self._acknowledged: dict[int, int] = {}
        self._delivered: dict[int, int] = {}
        self._early_acks: dict[int, int] = {}
        self._mean_size, self._unreachable, self._closed = 1 << 16, "", False
        self._fatal_error: KafkaError | None = None
        own = {"group.id": group, "error_cb": self._on_error}
        self._consumer = Consumer({**CONSUMER, **client, **PROPERTIES, **self.EXTRA, **own})
        with ExitStack() as failed:
            failed.callback(self._consumer.close)
            check_topic(self._consumer, topic)
            self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
            failed.pop_all()

    @property
    def delivered(self) -> Cursor:
        """What was delivered."""
        return dict(self._delivered)

    def next_parameters(self, after: Cursor) -> dict[str, str]:
        """Return what acknowledges all answers, of which *after* was acknowledged before."""
        return {"after": format_cursor({**after, **self.delivered})}

    def headers(self) -> dict[str, str]:
        """Return further headers of a response."""
        return {}

    def resume(self, after: Cursor, paid: Paid = NO_PAID) -> None:
        """Acknowledge the records before *after*; those delivered beyond it are delivered again."""
        with self._open():
            self._acknowledge(after, wait=False)
            for partition, offset in self._acknowledged.items():
                if self._delivered[partition] > offset:
                    self._consumer.seek(TopicPartition(self.topic, partition, offset))
                    self._delivered[partition] = offset

    def commit(self, after: Cursor, paid: Paid = NO_PAID) -> None:
        """Acknowledge the records before *after*, and wait for Kafka's commit.

        Raises:
            RefusedError: 409: a partition is not assigned to this session.
        """
        with self._open():
            self._acknowledge(after, wait=True)
            if elsewhere := after.keys() - self._delivered.keys():
                where = f"partition {min(elsewhere)} of {self.topic} is not read in this session"
                raise RefusedError(409, f"{where}: acknowledge by after= of the next request")

    def poll(self, most: int, size: int, timeout: float) -> list[Message]:
        """Return the next records: those that are there, else the first that comes.

        Args:
            most: Most records.
            size: A batch ends when it has so many bytes; librdkafka's queue bounds the excess.
            timeout: Longest wait for the first. [s]

        Raises:
            RefusedError: Kafka refuses, or the session was closed.
        """
        with self._open():
            messages = self._read(1, timeout)
            got = sum(map(len, messages))
            while messages and len(messages) < most and got < size:
                more = self._read(min(most - len(messages), 1 + (size - got) // self._mean_size), 0)
                if not more:
                    break
                read = sum(map(len, more))
                self._mean_size, got = max(1, read // len(more)), got + read
                messages += more
            return messages

    def close(self) -> None:
        """Commit what was acknowledged, and leave the group."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with suppress(KafkaException):  # then records come twice
                self._commit(self._acknowledged, wait=True)
            with suppress(KafkaException):
                self._consumer.close()

    def check_reachable(self) -> None:
        """Check that Kafka answers.

        Raises:
            RefusedError: It does not.
        """
        if self._unreachable:
            raise RefusedError(503, f"topic {self.topic}: {self._unreachable}")

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Lock the session within the block; Kafka's errors there are raised as refusals."""
        with self._lock:
            self.last_used = time.monotonic()
            if self._closed:
                raise RefusedError(409, "this session was closed: it was silent for too long; ask again")
            try:
                yield
            except KafkaException as error:
                raise kafka_refusal(error.args[0], self.topic, self.group) from error

    def _read(self, most: int, timeout: float) -> list[Message]:
        messages = self._consumer.consume(most, timeout)
        for error in (self._fatal_error, *(message.error() for message in messages)):
            if error is not None and error.code() not in IGNORED_ERRORS:
                raise kafka_refusal(error, self.topic, self.group)
        self._unreachable = "" if messages else self._unreachable
        records = [message for message in messages if message.error() is None]
        for record in records:  # at once: the next call may take their partition from us
            partition, offset = record.partition() or 0, record.offset() or 0
            self._acknowledged.setdefault(partition, offset)
            self._delivered[partition] = offset + 1
        self._on_messages(messages)
        return records

    def _on_messages(self, messages: list[Message]) -> None:
        """See records, errors and, where asked for, ends of partitions; for sub-classes."""

    def _acknowledge(self, after: Cursor, *, wait: bool) -> None:
        done: dict[int, int] = {}
        for partition, offset in after.items():
            if partition not in self._delivered:
                self._early_acks[partition] = offset
            elif self._acknowledged[partition] < min(offset, self._delivered[partition]):
                done[partition] = min(offset, self._delivered[partition])
        self._acknowledged |= done
        self._commit(done, wait=wait)

    def _commit(self, offsets: Cursor, *, wait: bool) -> None:
        if offsets:
            positions = [TopicPartition(self.topic, *one) for one in offsets.items()]
            commit: Any = self._consumer.commit  # its overloads need a literal
            commit(offsets=positions, asynchronous=not wait)

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Begin at the group's offsets, or after those acknowledged before the assignment."""
        if self._closed:
            return
        with suppress(KafkaException):  # then records come twice
            held = {one.partition: one.offset for one in consumer.committed(assigned, timeout=TIMEOUT)}
            ahead = {
                at: claim for at, offset in held.items() if (claim := self._early_acks.pop(at, -1)) > offset
            }
            known = {at: offset for at, offset in (held | ahead).items() if offset >= 0}
            self._acknowledged |= known
            self._delivered |= known
            self._commit(ahead, wait=True)

    def _on_revoke(self, _consumer: Consumer, revoked: list[TopicPartition]) -> None:
        for one in revoked:
            self._acknowledged.pop(one.partition, None)
            self._delivered.pop(one.partition, None)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._unreachable = error.str()
        elif error.code() in REFUSALS and TRANSPORT_FAILURE not in error.str():
            self._fatal_error = error
