"""Reading GCN's own Kafka: topics as they appear, from the offsets in the accounts."""

import logging
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts
from nightwire.core.kafka import CONSUMER, STARTUP_ERRORS, TopicPartition, error_code, watermarks
from nightwire.core.runtime import LogLimiter
from nightwire.gateway.ingest.gcn import EXPIRED, count_outcome, is_new_topic, source_name, wanted
from nightwire.gateway.ingest.settings import GcnSettings

log = logging.getLogger(__name__)

DISCOVERY_INTERVAL = 5.0
"""Time between looks for new topics, and for an answer where there was none. [s]"""
TIMEOUT = 10.0
"""Longest wait for the answer to a question. [s]"""
POLL_TIMEOUT = 0.5
"""Longest wait for a first record. [s]"""
BATCH = 100
"""Most records taken at once."""

TRANSIENT_ERRORS = STARTUP_ERRORS | {
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._AUTHENTICATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
"""Errors after which librdkafka goes on by itself: an outage, a refused token, a deleted topic."""


class GcnSource:
    """The wanted topics of GCN.  `take` and `close` block: call them from one thread.

    Args:
        settings: What is wanted.
        accounts: How far each partition was read.

    Raises:
        KafkaException: The settings cannot be used.
    """

    def __init__(self, settings: GcnSettings, accounts: OffsetAccounts) -> None:
        self._settings, self._accounts = settings, accounts
        self._logged = LogLimiter()
        self._assigned: dict[TopicPartition, TopicPartitionOffset] = {}
        self._cluster = ""
        self._discovered_at = float("-inf")
        self._consumer = Consumer(
            CONSUMER
            | {"group.id": "nightwire-gcn"}  # librdkafka wants one; nothing is committed
            | dict(settings.properties)
            | {"bootstrap.servers": settings.bootstrap, "error_cb": self._log_error}
        )

    def take(self) -> list[Message]:
        """Return the next records, at most `BATCH`; none where none comes for a while.

        Raises:
            KafkaException: GCN's Kafka refuses us for good.
        """
        if time.monotonic() - self._discovered_at >= DISCOVERY_INTERVAL and self._discover():
            return []  # that reading began is accounted for first
        first = self._consumer.poll(POLL_TIMEOUT)
        if first is None:
            return []
        found = [first, *self._consumer.consume(BATCH - 1, 0)]
        return [message for message in found if not self._is_notice(message)]

    def name(self, message: Message) -> TopicPartition:
        """Return topic and partition of *message* as accounts name them."""
        return source_name(self._cluster, str(message.topic())), message.partition() or 0

    def behind(self) -> int:
        """Return how many records lie ahead, as far as is known without asking."""
        behind = 0
        for name, partition in self._assigned.items():
            _low, high = self._consumer.get_watermark_offsets(partition, cached=True)
            behind += max(0, high - (self._accounts.position(name) or 0))
        return behind

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def _discover(self) -> bool:
        """Find topics that are new, and read them as well; say whether there are any."""
        self._discovered_at = time.monotonic()
        try:
            if not self._assigned:  # else it could return a record
                self._consumer.poll(0)  # serves the first token
            metadata: Any = self._consumer.list_topics(timeout=TIMEOUT)
            fresh = self._unassigned(metadata)
            begun = {name: self._begin(name, partition) for name, partition in fresh.items()}
        except KafkaException as error:
            if error_code(error) not in TRANSIENT_ERRORS:
                raise
            self._log_error(error.args[0])
            return False
        if begun:
            self._assigned.update(begun)
            topics = {partition.topic for partition in self._assigned.values()}
            log.info("GCN: reading %d topics", len(topics))
            self._assign()
        elif not self._assigned:
            patterns = ", ".join(self._settings.topics)
            log.warning("GCN at %s has no topic %s", self._settings.bootstrap, patterns)
        return bool(begun)

    def _unassigned(self, metadata: Any) -> dict[TopicPartition, TopicPartitionOffset]:
        self._cluster = str(metadata.cluster_id or "unknown")
        return {
            (source_name(self._cluster, topic), partition): TopicPartitionOffset(topic, partition)
            for topic in sorted(wanted(metadata.topics, self._settings.topics))
            for partition in sorted(metadata.topics[topic].partitions)
            if (source_name(self._cluster, topic), partition) not in self._assigned
        }

    def _begin(self, name: TopicPartition, partition: TopicPartitionOffset) -> TopicPartitionOffset:
        low, high = watermarks(self._consumer, partition.topic, partition.partition, patience=TIMEOUT)
        position, patterns = self._accounts.position(name), self._settings.topics
        if position is None:
            oldest = self._settings.oldest or is_new_topic(partition.topic, patterns, self._accounts.sources)
            self._accounts.begin(name, low if oldest else high)
        elif position > high:
            log.error(
                "%s of GCN ends at %d, but was read up to %d: it was made anew", partition, high, position
            )
            self._accounts.begin(name, low)
        elif position < low:
            log.error("%s[%d]: %d records expired before they were read", *name, low - position)
            count_outcome(self._accounts, name, low - 1, EXPIRED, low - position)
        return partition

    def _assign(self) -> None:
        self._consumer.assign(
            [
                TopicPartitionOffset(partition.topic, partition.partition, self._accounts.position(name) or 0)
                for name, partition in self._assigned.items()
            ]
        )

    def _is_notice(self, message: Message) -> bool:
        """Say whether *message* is an error of librdkafka's, or of an assignment that ended."""
        error = message.error()
        if error is None:
            return (message.offset() or 0) < (self._accounts.position(self.name(message)) or 0)
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._assigned.pop(self.name(message), None)  # the next record was deleted: begin anew
            self._discovered_at = float("-inf")
        elif error.code() not in TRANSIENT_ERRORS or error.fatal():
            raise KafkaException(error)
        return True

    def _log_error(self, error: KafkaError) -> None:
        if self._logged.allows(error.code()):
            log.warning("GCN's Kafka: %s", error.str())
