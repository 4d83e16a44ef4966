"""Reading GCN's own Kafka: topics as they appear, from where the ledger says.  All I/O with it."""

import logging
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition
from nightwire.gateway.ingest.gcn import EXPIRED, GcnOffsets, source_name, wanted
from nightwire.gateway.ingest.settings import GcnSettings

log = logging.getLogger(__name__)

DISCOVERY = 5.0
"""Time between looks for new topics, and for an answer where there was none. [s]"""
TIMEOUT = 10.0
"""Longest wait for the answer to a question. [s]"""
TICK = 0.5
"""Longest wait for a first record. [s]"""
AT_ONCE = 100
"""Most records taken at once."""
COMPLAINTS = 60.0
"""Time between equal complaints. [s]"""

PASSING = kafka.STARTUP_ERRORS | {
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._AUTHENTICATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
"""Errors after which librdkafka goes on by itself: an outage, a refused token, a topic that is gone."""


class GcnSource:
    """The wanted topics of GCN.  `take` and `close` block: call them from one thread.

    Args:
        settings: What is wanted.
        ledger: How far each partition was read.

    Raises:
        KafkaException: The settings cannot be used.
    """

    def __init__(self, settings: GcnSettings, ledger: GcnOffsets) -> None:
        self._settings, self._ledger = settings, ledger
        self._said: dict[int, float] = {}
        self._assigned: dict[TopicPartition, TopicPartitionOffset] = {}
        self._cluster = ""
        self._looked = float("-inf")
        self._consumer = Consumer(
            kafka.CONSUMER
            | {"group.id": "nightwire-gcn"}  # librdkafka wants one; nothing is committed
            | dict(settings.properties)
            | {"bootstrap.servers": settings.bootstrap, "error_cb": self._complain}
        )

    def take(self) -> list[Message]:
        """Return what comes next, at most `AT_ONCE` records; nothing where nothing comes for a while.

        Raises:
            KafkaException: GCN's Kafka refuses us for good.
        """
        if time.monotonic() - self._looked >= DISCOVERY and self._look():
            return []  # what was begun is accounted for first
        first = self._consumer.poll(TICK)
        if first is None:
            return []
        found = [first, *self._consumer.consume(AT_ONCE - 1, 0)]
        return [message for message in found if not self._is_fault(message)]

    def spot(self, message: Message) -> TopicPartition:
        """Return the place of *message* in accounts."""
        return source_name(self._cluster, str(message.topic())), message.partition() or 0

    def behind(self) -> int:
        """Return how many records lie ahead, as far as is known without asking."""
        behind = 0
        for spot, part in self._assigned.items():
            _low, high = self._consumer.get_watermark_offsets(part, cached=True)
            behind += max(0, high - (self._ledger.position(spot) or 0))
        return behind

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def _look(self) -> bool:
        """Find topics that are new, and read them as well; say whether there are any."""
        self._looked = time.monotonic()
        try:
            if not self._assigned:  # else it could return a record
                self._consumer.poll(0)  # serves the first token
            known: Any = self._consumer.list_topics(timeout=TIMEOUT)
            fresh = self._fresh(known)
            begun = {spot: self._begin(spot, part) for spot, part in fresh.items()}
        except KafkaException as error:
            if error.args[0].code() not in PASSING:
                raise
            self._complain(error.args[0])
            return False
        if begun:
            log.info("GCN: reading %d topics", len({part.topic for part in [*self._all(), *begun.values()]}))
            self._assigned.update(begun)
            self._assign()
        elif not self._assigned:
            log.warning(
                "GCN at %s has no topic %s", self._settings.bootstrap, ", ".join(self._settings.topics)
            )
        return bool(begun)

    def _fresh(self, known: Any) -> dict[TopicPartition, TopicPartitionOffset]:
        self._cluster = str(known.cluster_id or "unknown")
        return {
            (source_name(self._cluster, topic), part): TopicPartitionOffset(topic, part)
            for topic in sorted(wanted(known.topics, self._settings.topics))
            for part in sorted(known.topics[topic].partitions)
            if (source_name(self._cluster, topic), part) not in self._assigned
        }

    def _begin(self, spot: TopicPartition, part: TopicPartitionOffset) -> TopicPartitionOffset:
        low, high = kafka.watermarks(self._consumer, part.topic, part.partition, patience=TIMEOUT)
        mark = self._ledger.position(spot)
        if mark is None:
            oldest = self._settings.oldest or self._ledger.follows(part.topic, self._settings.topics)
            self._ledger.begin(spot, low if oldest else high)
        elif mark > high:
            log.error("%s of GCN ends at %d, but was read up to %d: it was made anew", part, high, mark)
            self._ledger.begin(spot, low)
        elif mark < low:
            self._expire(spot, mark, low)
        return part

    def _expire(self, spot: TopicPartition, mark: int, low: int) -> None:
        log.error("%s[%d]: %d records expired before they were read", *spot, low - mark)
        self._ledger.note(spot, low - 1, EXPIRED, low - mark)

    def _all(self) -> list[TopicPartitionOffset]:
        return list(self._assigned.values())

    def _assign(self) -> None:
        where = [
            TopicPartitionOffset(part.topic, part.partition, self._ledger.position(spot) or 0)
            for spot, part in self._assigned.items()
        ]
        self._consumer.assign(where)

    def _is_fault(self, message: Message) -> bool:
        """Say whether *message* is an error of librdkafka's, or of an assignment that is no more."""
        error = message.error()
        if error is None:
            return (message.offset() or 0) < (self._ledger.position(self.spot(message)) or 0)
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._assigned.pop(self.spot(message), None)  # what comes next was deleted: begin there anew
            self._looked = float("-inf")
        elif error.code() not in PASSING or error.fatal():
            raise KafkaException(error)
        return True

    def _complain(self, error: KafkaError) -> None:
        now = time.monotonic()
        if now - self._said.get(error.code(), float("-inf")) >= COMPLAINTS:
            self._said[error.code()] = now
            log.warning("GCN's Kafka: %s", error.str())
