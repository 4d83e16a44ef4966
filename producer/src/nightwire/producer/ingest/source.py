"""Reading the survey's own Kafka: the client with its credentials, and its partitions."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition, error_code, error_text, properties, watermarks
from nightwire.core.runtime import LogLimiter
from nightwire.producer.ingest.batch import Event
from nightwire.producer.ingest.items import Item, beginning, expired
from nightwire.producer.ingest.plan import Plan
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.ingest")

PREFIX = "NIGHTWIRE_SOURCE_KAFKA_"
"""Begins variables with librdkafka's properties for the source; ``KAFKA_*`` are for ours."""
DISCOVERY = 5.0
"""Time between two searches for new topics and partitions. [s]"""
TIMEOUT = 10.0
"""Longest wait for the answer to a question. [s]"""
FIRST_POLL = 0.2
"""Longest wait for a first record. [s]"""
MAX_CONSUMED = 255
"""Records taken from librdkafka's queue at once."""
MAX_BATCH_BYTES = 48 << 20
"""Size of values at which a batch is full, since a transaction is held in memory. [byte]"""
MAX_BATCH_RECORDS = 5000
"""Records at which a batch is full."""

DELETED_ERRORS = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
"""Errors of a topic that the survey has deleted."""
TOLERATED_ERRORS = (
    kafka.TRANSIENT_ERRORS
    | DELETED_ERRORS
    | {KafkaError._AUTHENTICATION, KafkaError._MAX_POLL_EXCEEDED, KafkaError.GROUP_AUTHORIZATION_FAILED}
)
"""Errors from which librdkafka recovers, or of the group, in which we keep no position."""


class SourceError(MendableError):
    """The source does not fit our accounts, or cannot be read; the message says what to do."""


def connect(address: str, group: str, env: Mapping[str, str] = os.environ) -> Consumer:
    """Return a consumer of the cluster at *address*, set by ``NIGHTWIRE_SOURCE_KAFKA_*``.

    Raises:
        SourceError: librdkafka refuses a setting; the message does not hold its value.
    """
    settings = properties(env, PREFIX)
    try:
        return Consumer(
            kafka.CONSUMER
            | settings
            | {
                "bootstrap.servers": address,
                "group.id": group,
                "enable.partition.eof": True,
                "error_cb": ErrorLog(),
            }
        )
    except KafkaException as error:
        named = ", ".join(PREFIX + name.upper().replace(".", "_") for name in sorted(settings))
        reason = error_text(error)
        if any(value and value in reason for value in settings.values()):
            reason = error.args[0].name()
        raise SourceError(f"the source's settings ({named or 'none'}) are refused: {reason}") from None


class ErrorLog:
    """Logs librdkafka's errors, each kind at most once a minute."""

    def __init__(self) -> None:
        self._limiter = LogLimiter()

    def __call__(self, error: KafkaError) -> None:
        """Log *error*."""
        if self._limiter.allows(error.code()):
            log.warning("the source's Kafka: %s", error.str())


@dataclass
class Source:
    """The wanted partitions of the source, each read from its position on.

    Args:
        consumer: From `connect`.
        plan: Which topics are wanted.
        position: Gives the next offset of a partition to mirror; None of a new one.
        seen: The topics that were read before this run.
    """

    consumer: Consumer
    plan: Plan
    position: Callable[[TopicPartition], int | None]
    seen: set[str]
    _next: dict[TopicPartition, int] = field(default_factory=dict)
    _ends: dict[TopicPartition, int] | None = None
    _discovered: float = float("-inf")
    _events: list[Event] = field(default_factory=list)

    @property
    def at_end(self) -> bool:
        """Whether all records have been read that the source had at the start."""
        return self._ends is not None and not self._ends

    def close(self) -> None:
        """Leave the cluster."""
        self.consumer.close()

    def take(self) -> list[Event]:
        """Return the next events: those of the plan's time for a batch, at most as many as fit one.

        Raises:
            SourceError: A topic ends before its position: it was created anew.
            KafkaException: The source refuses us.
        """
        if time.monotonic() - self._discovered >= DISCOVERY:
            self._discover()
        deadline, size = time.monotonic() + self.plan.batch, 0
        while not self._full(size) and (left := deadline - time.monotonic()) > 0:
            first = self.consumer.poll(min(FIRST_POLL, left))
            if first is None:
                if self._events or self.at_end:
                    break
                continue
            for message in [first, *self.consumer.consume(MAX_CONSUMED, 0)]:
                size += self._receive(message)
        taken, self._events = self._events, []
        return taken

    def lag(self) -> dict[TopicPartition, int]:
        """Return how many offsets of each partition are not read yet, without asking Kafka."""
        behind = {}
        for partition, next_ in self._next.items():
            _low, high = self.consumer.get_watermark_offsets(TopicPartitionOffset(*partition), cached=True)
            behind[partition] = max(0, high - next_)
        return behind

    def _full(self, size: int) -> bool:
        return size >= MAX_BATCH_BYTES or len(self._events) >= MAX_BATCH_RECORDS

    def _receive(self, message: Message) -> int:
        """Keep *message*, or handle its error; return its size. [byte]"""
        partition, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
        if (error := message.error()) is not None:
            self._handle_error(partition, offset, error)
            return 0
        if offset < self._next.get(partition, offset + 1):  # of an earlier assignment
            return 0
        self._next[partition] = offset + 1
        self._reached(partition, offset + 1)
        self._events.append(message)
        return len(message.value() or b"")

    def _handle_error(self, partition: TopicPartition, offset: int, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._reached(partition, offset)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._skip(partition)
        elif error.code() not in TOLERATED_ERRORS or error.fatal():
            raise KafkaException(error)
        elif error.code() in DELETED_ERRORS:
            self._discovered = float("-inf")

    def _reached(self, partition: TopicPartition, offset: int) -> None:
        if self._ends is not None and offset >= self._ends.get(partition, offset + 1):
            del self._ends[partition]

    def _discover(self) -> None:
        """Find new topics and partitions, and leave deleted ones."""
        self._discovered = time.monotonic()
        try:
            there: Any = self.consumer.list_topics(timeout=TIMEOUT).topics
            wanted = {
                (topic, part)
                for topic in self.plan.topics.among(there)
                for part in there[topic].partitions
                if there[topic].error is None
            }
            fresh = {partition: self._begin(partition) for partition in sorted(wanted - self._next.keys())}
        except KafkaException as error:
            never = self._ends is None and self.plan.until_end
            if error_code(error) not in TOLERATED_ERRORS or never:
                raise
            log.warning("the source does not answer, asking again: %s", error_text(error))
            return
        self._adopt(fresh, wanted)

    def _adopt(
        self, found: Mapping[TopicPartition, tuple[int, list[Item]]], wanted: set[TopicPartition]
    ) -> None:
        gone = self._next.keys() - wanted
        fresh = {partition: at for partition, (at, _items) in found.items()}
        if self._ends is None and self.plan.until_end:
            ends = {
                partition: watermarks(self.consumer, *partition, patience=TIMEOUT)[1] for partition in fresh
            }
            self._ends = {partition: end for partition, end in ends.items() if end > fresh[partition]}
        if not fresh and not gone:
            return
        log.info("reading %s", _names(fresh) if fresh else "no more of " + _names(gone))
        self.seen.update(topic for topic, _ in fresh)
        self._next = {partition: at for partition, at in self._next.items() if partition in wanted} | fresh
        self._events += [item for _at, items in found.values() for item in items]
        self._assign()

    def _assign(self) -> None:
        self.consumer.assign([TopicPartitionOffset(*partition, at) for partition, at in self._next.items()])

    def _begin(self, partition: TopicPartition) -> tuple[int, list[Item]]:
        """Return the offset at which *partition* begins, and the items of that for its account."""
        low, high = watermarks(self.consumer, *partition, patience=TIMEOUT)
        position = self.position(partition)
        if position is None:
            at = self._start(partition, low, high)
            return at, [beginning(partition, at)]
        if position > high:
            raise SourceError(_created_anew(partition, position, high))
        return max(position, low), _expired(partition, position, low)

    def _start(self, partition: TopicPartition, low: int, high: int) -> int:
        start = self.plan.start
        if not self.plan.topics.is_new(partition[0], self.seen):
            return low
        if start.at is not None:
            asked = TopicPartitionOffset(*partition, int(start.at.timestamp() * 1000))
            (found,) = self.consumer.offsets_for_times([asked], timeout=TIMEOUT)
            return int(found.offset) if found.offset >= 0 else high
        return high if start.live else low

    def _skip(self, partition: TopicPartition) -> None:
        """Go on with the oldest record of *partition*, after the next one was deleted."""
        next_ = self._next[partition]
        low, high = watermarks(self.consumer, *partition)
        if next_ > high:
            raise SourceError(_created_anew(partition, next_, high))
        self._next[partition] = max(next_, low)
        self._events += _expired(partition, next_, low)
        self._assign()  # librdkafka cannot seek in this state


def _expired(partition: TopicPartition, next_: int, low: int) -> list[Item]:
    if low <= next_:
        return []
    log.error("%s[%d]: %d records expired before they were mirrored", *partition, low - next_)
    return [expired(partition, next_, low)]


def _created_anew(partition: TopicPartition, position: int, end: int) -> str:
    topic, number = partition
    return (
        f"{topic}[{number}] of the source ends at offset {end}, but is mirrored up to {position}: it was "
        "created anew, or --from names another cluster.  Mirror it under another --name"
    )


def _names(partitions: Mapping[TopicPartition, int] | set[TopicPartition]) -> str:
    counts: dict[str, int] = {}
    for topic, _ in partitions:
        counts[topic] = counts.get(topic, 0) + 1
    return ", ".join(f"{topic} ({count} partitions)" for topic, count in sorted(counts.items()))
