"""A client of the survey's own Kafka, with credentials that nobody gets to see."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition, properties
from nightwire.core.kafka import watermarks as held
from nightwire.core.runtime import LogLimiter
from nightwire.producer.ingest.batch import Event
from nightwire.producer.ingest.items import Item, beginning, expired
from nightwire.producer.ingest.plan import Plan

log = logging.getLogger("nightwire.ingest")

PREFIX = "NIGHTWIRE_SOURCE_KAFKA_"
"""Of variables that set librdkafka's properties for the source; ``KAFKA_*`` are the target's."""


class SourceError(Exception):
    """The source is not as the marks say, or cannot be read at all; the message says what to do."""


def connect(address: str, group: str, env: Mapping[str, str] = os.environ) -> Consumer:
    """Return a consumer of the cluster at *address*, with ``NIGHTWIRE_SOURCE_KAFKA_*`` as its settings.

    Raises:
        SourceError: A setting is none; its value is not told.
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
        reason = error.args[0].str()
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


DISCOVERY = 5.0
"""Time between looks for new topics and partitions. [s]"""
TIMEOUT = 10.0
"""Longest wait for the answer to a question. [s]"""
TICK = 0.2
"""Longest wait for a first record. [s]"""
AT_ONCE = 255
"""Records taken from librdkafka's queue at once."""
MOST_BYTES = 48 << 20
"""Size of values after which a batch is full: what a transaction holds in memory. [byte]"""
MOST = 5000
"""Records after which a batch is full."""

GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
"""A topic that the survey has deleted."""
PASSING = (
    kafka.TRANSIENT_ERRORS
    | GONE
    | {KafkaError._AUTHENTICATION, KafkaError._MAX_POLL_EXCEEDED, KafkaError.GROUP_AUTHORIZATION_FAILED}
)
"""Errors after which librdkafka goes on by itself, or that are none of ours: we keep no position there."""


@dataclass
class Source:
    """The wanted partitions of the source, each read from its mark on.

    Args:
        consumer: From `connect`.
        plan: What is wanted.
        position: Gives the next offset to mirror of a partition; None of one that was never read.
        seen: The topics that were read before this run.
    """

    consumer: Consumer
    plan: Plan
    position: Callable[[TopicPartition], int | None]
    seen: set[str]
    _next: dict[TopicPartition, int] = field(default_factory=dict)
    _ends: dict[TopicPartition, int] | None = None
    _looked: float = float("-inf")
    _events: list[Event] = field(default_factory=list)

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there at the beginning."""
        return self._ends is not None and not self._ends

    def close(self) -> None:
        """Leave the cluster."""
        self.consumer.close()

    def take(self) -> list[Event]:
        """Return what comes next: within the plan's time of a batch, at most so much as a batch holds.

        Raises:
            SourceError: A topic ends before its mark: it was made anew.
            KafkaException: The source refuses us.
        """
        if time.monotonic() - self._looked >= DISCOVERY:
            self._look()
        deadline, size = time.monotonic() + self.plan.batch, 0
        while not self._full(size) and (left := deadline - time.monotonic()) > 0:
            first = self.consumer.poll(min(TICK, left))
            if first is None:
                if self._events or self.at_end:
                    break
                continue
            for message in [first, *self.consumer.consume(AT_ONCE, 0)]:
                size += self._sort(message)
        taken, self._events = self._events, []
        return taken

    def lag(self) -> dict[TopicPartition, int]:
        """Return how many offsets of each partition lie ahead, as far as is known without asking."""
        behind = {}
        for source_partition, next_ in self._next.items():
            _low, high = self.consumer.get_watermark_offsets(
                TopicPartitionOffset(*source_partition), cached=True
            )
            behind[source_partition] = max(0, high - next_)
        return behind

    def _full(self, size: int) -> bool:
        return size >= MOST_BYTES or len(self._events) >= MOST

    def _sort(self, message: Message) -> int:
        """Note what *message* says; return its size. [byte]"""
        source_partition, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
        if (error := message.error()) is not None:
            self._fault(source_partition, offset, error)
            return 0
        if offset < self._next.get(source_partition, offset + 1):  # of an assignment that is no more
            return 0
        self._next[source_partition] = offset + 1
        self._reached(source_partition, offset + 1)
        self._events.append(message)
        return len(message.value() or b"")

    def _fault(self, source_partition: TopicPartition, offset: int, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._reached(source_partition, offset)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._skip(source_partition)
        elif error.code() not in PASSING or error.fatal():
            raise KafkaException(error)
        elif error.code() in GONE:
            self._looked = float("-inf")

    def _reached(self, source_partition: TopicPartition, offset: int) -> None:
        if self._ends is not None and offset >= self._ends.get(source_partition, offset + 1):
            del self._ends[source_partition]

    def _look(self) -> None:
        """Find new topics and partitions, and leave those that are gone."""
        self._looked = time.monotonic()
        try:
            there: Any = self.consumer.list_topics(timeout=TIMEOUT).topics
            wanted = {
                (topic, part)
                for topic in self.plan.topics.among(there)
                for part in there[topic].partitions
                if there[topic].error is None
            }
            fresh = {
                source_partition: self._begin(source_partition)
                for source_partition in sorted(wanted - self._next.keys())
            }
        except KafkaException as error:
            never = self._ends is None and self.plan.until_end
            if error.args[0].code() not in PASSING or never:
                raise
            log.warning("the source does not answer, asking again: %s", error.args[0].str())
            return
        self._adopt(fresh, wanted)

    def _adopt(
        self, found: Mapping[TopicPartition, tuple[int, list[Item]]], wanted: set[TopicPartition]
    ) -> None:
        gone = self._next.keys() - wanted
        fresh = {source_partition: at for source_partition, (at, _said) in found.items()}
        if self._ends is None and self.plan.until_end:
            ends = {
                source_partition: held(self.consumer, *source_partition, patience=TIMEOUT)[1]
                for source_partition in fresh
            }
            self._ends = {
                source_partition: end
                for source_partition, end in ends.items()
                if end > fresh[source_partition]
            }
        if not fresh and not gone:
            return
        log.info("reading %s", _names(fresh) if fresh else "no more of " + _names(gone))
        self.seen.update(topic for topic, _ in fresh)
        self._next = {
            source_partition: at for source_partition, at in self._next.items() if source_partition in wanted
        } | fresh
        self._events += [item for _at, said in found.values() for item in said]
        self._assign()

    def _assign(self) -> None:
        self.consumer.assign(
            [TopicPartitionOffset(*source_partition, at) for source_partition, at in self._next.items()]
        )

    def _begin(self, source_partition: TopicPartition) -> tuple[int, list[Item]]:
        """Return where to begin with *source_partition*, and what that means for its account."""
        low, high = held(self.consumer, *source_partition, patience=TIMEOUT)
        mark = self.position(source_partition)
        if mark is None:
            at = self._start(source_partition, low, high)
            return at, [beginning(source_partition, at)]
        if mark > high:
            raise SourceError(_made_anew(source_partition, mark, high))
        return max(mark, low), _expired(source_partition, mark, low)

    def _start(self, source_partition: TopicPartition, low: int, high: int) -> int:
        start = self.plan.start
        if not self.plan.topics.is_new(source_partition[0], self.seen):
            return low
        if start.at is not None:
            asked = TopicPartitionOffset(*source_partition, int(start.at.timestamp() * 1000))
            (found,) = self.consumer.offsets_for_times([asked], timeout=TIMEOUT)
            return int(found.offset) if found.offset >= 0 else high
        return high if start.live else low

    def _skip(self, source_partition: TopicPartition) -> None:
        """Go on with the oldest record there is, after the next one was deleted."""
        next_ = self._next[source_partition]
        low, high = held(self.consumer, *source_partition)
        if next_ > high:
            raise SourceError(_made_anew(source_partition, next_, high))
        self._next[source_partition] = max(next_, low)
        self._events += _expired(source_partition, next_, low)
        self._assign()  # librdkafka cannot seek in this state


def _expired(source_partition: TopicPartition, next_: int, low: int) -> list[Item]:
    if low <= next_:
        return []
    log.error("%s[%d]: %d records expired before they were mirrored", *source_partition, low - next_)
    return [expired(source_partition, next_, low)]


def _made_anew(source_partition: TopicPartition, mark: int, end: int) -> str:
    topic, partition = source_partition
    return (
        f"{topic}[{partition}] of the source ends at offset {end}, but is mirrored up to {mark}: it was made "
        "anew, or --from names another cluster.  Mirror it under another --name"
    )


def _names(spots: Mapping[TopicPartition, int] | set[TopicPartition]) -> str:
    counts: dict[str, int] = {}
    for topic, _ in spots:
        counts[topic] = counts.get(topic, 0) + 1
    return ", ".join(f"{topic} ({count} partitions)" for topic, count in sorted(counts.items()))
