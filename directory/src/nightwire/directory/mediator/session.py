"""One member of a consumer group: batches that are delivered until they are acknowledged."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from nightwire.core.kafka import CONSUMER, REFUSALS, TRANSIENT_ERRORS
from nightwire.directory.mediator.kafka_access import TIMEOUT, check_topic, refusal
from nightwire.schemas.serving import RefusedError

Cursor = Mapping[int, int]
"""By partition, the offset behind the last record that is done."""

Paid = frozenset[tuple[int, int]]
"""Partitions and offsets of alerts that followed over a slow link, and were taken."""
NOTHING: Paid = frozenset()

CURSOR = re.compile(r"(?:\d{1,9}:\d{1,18}(?:,\d{1,9}:\d{1,18})*)?", re.ASCII)
SPANS = re.compile(r"\d{1,9}:\d{1,18}-\d{1,18}(?:,\d{1,9}:\d{1,18}-\d{1,18})*", re.ASCII)
MOST_PAID = 10_000
"""Most alerts that follow at once."""
LIMITS: Mapping[str, Any] = {
    "queued.max.messages.kbytes": 4 << 10,
    "fetch.message.max.bytes": 1 << 20,
    "fetch.max.bytes": 4 << 20,
    "receive.message.max.bytes": (4 << 20) + (1 << 20),
    "auto.offset.reset": "earliest",
    "group.protocol": "classic",
    "session.timeout.ms": 10_000,
    "partition.assignment.strategy": "cooperative-sticky",
}
"""What a slow reader's share of memory is, where a new group begins, and how its members share (as
those of `nightwire subscribe`, so that a group may hold both)."""
PASSING = TRANSIENT_ERRORS | {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError._PARTITION_EOF,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REBALANCE_IN_PROGRESS,
}
BROKEN = "Broker transport failure"
"""Is in the error of a login that was cut short, as by a Kafka that stops: it is tried again."""


def cursor(text: str) -> Cursor:
    """Return the cursor that *text* says: ``PARTITION:OFFSET,…``.

    Raises:
        RefusedError: It says none.
    """
    if not CURSOR.fullmatch(text):
        raise RefusedError(400, f"{text[:99]!r} is no PARTITION:OFFSET,…")
    pairs = [pair.partition(":") for pair in text.split(",") if pair]
    return {int(partition): int(offset) for partition, _, offset in pairs}


def spans(text: str) -> Paid:
    """Return what *text* says: ``PARTITION:FIRST-LAST,…``.

    Raises:
        RefusedError: It says nothing such, or too much.
    """
    parts = (
        [tuple(map(int, re.split("[:-]", one))) for one in text.split(",")] if SPANS.fullmatch(text) else []
    )
    found = [(partition, range(first, last + 1)) for partition, first, last in parts]
    if (text and not found) or sum(len(one) for _, one in found) > MOST_PAID:
        raise RefusedError(400, f"{text[:99]!r} is no PARTITION:FIRST-LAST,…, or more than {MOST_PAID}")
    return frozenset((partition, offset) for partition, one in found for offset in one)


def text(done: Cursor) -> str:
    """Return *done* as `cursor` reads it."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(done.items()))


class Session:
    """A member of *group*, which reads *topic* as *client*.

    Args:
        client: librdkafka's properties of its user.
        topic: What it reads.
        group: Where its offsets are.

    Raises:
        RefusedError: Kafka refuses the topic, or does not answer.
    """

    MORE: Mapping[str, Any] = {}
    """Further properties of its client."""

    def __init__(self, client: Mapping[str, Any], topic: str, group: str) -> None:
        self.topic, self.group, self.used = topic, group, time.monotonic()
        self.turn = asyncio.Lock()
        """Is held by the request that reads."""
        self._lock = threading.Lock()
        self._acknowledged: dict[int, int] = {}
        self._delivered: dict[int, int] = {}
        self._claimed: dict[int, int] = {}
        self._mean, self._away, self._closed = 1 << 16, "", False
        self._refused: KafkaError | None = None
        own = {"group.id": group, "error_cb": self._heard}
        self._consumer = Consumer({**CONSUMER, **client, **LIMITS, **self.MORE, **own})
        with ExitStack() as failed:
            failed.callback(self._consumer.close)
            check_topic(self._consumer, topic)
            self._consumer.subscribe([topic], on_assign=self._given, on_revoke=self._taken)
            failed.pop_all()

    @property
    def delivered(self) -> Cursor:
        """What was delivered."""
        return dict(self._delivered)

    def next_question(self, after: Cursor) -> dict[str, str]:
        """Return what acknowledges all answers, of which *after* was acknowledged before."""
        return {"after": text({**after, **self.delivered})}

    def state(self) -> dict[str, str]:
        """Return what HTTP's headers say of it."""
        return {}

    def go_on(self, after: Cursor, paid: Paid = NOTHING) -> None:
        """Acknowledge what lies before *after*; what was delivered beyond it is delivered again."""
        with self._open():
            self._acknowledge(after, wait=False)
            for partition, offset in self._acknowledged.items():
                if self._delivered[partition] > offset:
                    self._consumer.seek(TopicPartition(self.topic, partition, offset))
                    self._delivered[partition] = offset

    def commit(self, after: Cursor, paid: Paid = NOTHING) -> None:
        """Acknowledge what lies before *after*, and wait until Kafka has it.

        Raises:
            RefusedError: 409: a partition is not, or no more, read here.
        """
        with self._open():
            self._acknowledge(after, wait=True)
            if elsewhere := after.keys() - self._delivered.keys():
                where = f"partition {min(elsewhere)} of {self.topic} is not read in this session"
                raise RefusedError(409, f"{where}: acknowledge by after= of the next request")

    def take(self, most: int, size: int, timeout: float) -> list[Message]:
        """Return the next records: those that are there, else what comes first.

        Args:
            most: How many at most.
            size: A batch ends when it has so many bytes; librdkafka's queue bounds what is more.
            timeout: Longest wait for that. [s]

        Raises:
            RefusedError: Reading cannot go on.
        """
        with self._open():
            messages = self._read(1, timeout)
            got = sum(map(len, messages))
            while messages and len(messages) < most and got < size:
                more = self._read(min(most - len(messages), 1 + (size - got) // self._mean), 0)
                if not more:
                    break
                read = sum(map(len, more))
                self._mean, got = max(1, read // len(more)), got + read
                messages += more
            return messages

    def close(self) -> None:
        """Leave the group, which knows what was acknowledged."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with suppress(KafkaException):  # then records come twice
                self._commit(self._acknowledged, wait=True)
            with suppress(KafkaException):
                self._consumer.close()

    def check_there(self) -> None:
        """Do nothing while Kafka answers.

        Raises:
            RefusedError: It does not.
        """
        if self._away:
            raise RefusedError(503, f"topic {self.topic}: {self._away}")

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Keep it open within the block; Kafka's errors there are refusals."""
        with self._lock:
            self.used = time.monotonic()
            if self._closed:
                raise RefusedError(409, "this session was closed: it was silent for too long; ask again")
            try:
                yield
            except KafkaException as error:
                raise refusal(error.args[0], self.topic, self.group) from error

    def _read(self, most: int, timeout: float) -> list[Message]:
        messages = self._consumer.consume(most, timeout)
        for error in (self._refused, *(message.error() for message in messages)):
            if error is not None and error.code() not in PASSING:
                raise refusal(error, self.topic, self.group)
        self._away = "" if messages else self._away
        records = [message for message in messages if message.error() is None]
        for record in records:  # at once: the next call may take their partition from us
            partition, offset = record.partition() or 0, record.offset() or 0
            self._acknowledged.setdefault(partition, offset)
            self._delivered[partition] = offset + 1
        self._note(messages)
        return records

    def _note(self, messages: list[Message]) -> None:
        """Note what was read, ends of partitions too, where somebody asks for these."""

    def _acknowledge(self, after: Cursor, *, wait: bool) -> None:
        done: dict[int, int] = {}
        for partition, offset in after.items():
            if partition not in self._delivered:
                self._claimed[partition] = offset
            elif self._acknowledged[partition] < min(offset, self._delivered[partition]):
                done[partition] = min(offset, self._delivered[partition])
        self._acknowledged |= done
        self._commit(done, wait=wait)

    def _commit(self, offsets: Cursor, *, wait: bool) -> None:
        if offsets:
            positions = [TopicPartition(self.topic, *one) for one in offsets.items()]
            commit: Any = self._consumer.commit  # its type wants to know *wait* beforehand
            commit(offsets=positions, asynchronous=not wait)

    def _given(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        """Begin where the group was, or behind what was acknowledged to an earlier session."""
        if self._closed:
            return
        with suppress(KafkaException):  # then records come twice
            held = {one.partition: one.offset for one in consumer.committed(given, timeout=TIMEOUT)}
            ahead = {
                at: claim for at, offset in held.items() if (claim := self._claimed.pop(at, -1)) > offset
            }
            known = {at: offset for at, offset in (held | ahead).items() if offset >= 0}
            self._acknowledged |= known
            self._delivered |= known
            self._commit(ahead, wait=True)

    def _taken(self, _consumer: Consumer, taken: list[TopicPartition]) -> None:
        for one in taken:
            self._acknowledged.pop(one.partition, None)
            self._delivered.pop(one.partition, None)

    def _heard(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._away = error.str()
        elif error.code() in REFUSALS and BROKEN not in error.str():
            self._refused = error
