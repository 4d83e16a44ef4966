"""Records by offset: one, or a few, fetched in a millisecond or two by a client that is kept."""

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka.clients import TRANSIENT_ERRORS, consumer
from nightwire.core.kafka.offsets import TopicPartition

PATIENCE = 5.0
"""Longest wait for a record. [s]"""
AHEAD = 1_000
"""A batch that was fetched is looked through for what lies so far behind what was wanted of it."""
SMALL: Mapping[str, Any] = {
    "fetch_message_max_bytes": 4096,
    "queued_min_messages": 1,
    "fetch_queue_backoff_ms": 1,
    "fetch_wait_max_ms": 20,
}
"""A fetch brings the batch that is asked for, and nothing is fetched ahead."""


class MissingError(Exception):
    """Records that were announced cannot be had from Kafka."""


class RecordFetcher:
    """Fetches records; it connects when it is asked first.

    It reads one partition at a time, and is never paused: librdkafka's seek after a pause takes a
    second, and others that it were assigned would send what nobody wants.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        client: librdkafka's properties of who asks; None for ourselves.
    """

    def __init__(self, bootstrap: str, client: Mapping[str, Any] | None = None) -> None:
        self._bootstrap, self._client = bootstrap, client
        self._assigned: TopicPartition | None = None
        self._at = 0  # the offset after the record that was seen last

    @cached_property
    def _consumer(self) -> Consumer:
        return consumer(self._bootstrap, client=self._client, enable_partition_eof=True, **SMALL)

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Return what Kafka says of a topic, as its clients do."""
        return self._consumer.list_topics(topic, timeout=timeout)

    def prepare(self, partition: TopicPartition) -> None:
        """Connect to where *partition* lies, before something is wanted: that takes 0.3 s."""
        if self._assigned is None:
            self._consumer.assign([TopicPartitionOffset(*partition, OFFSET_END)])
            self._assigned = partition

    def fetch(
        self, partition: TopicPartition, wanted: range, patience: float = PATIENCE, *, announced: bool = True
    ) -> list[Message]:
        """Return the records of *partition* in *wanted*; offsets without a record are no error.

        Args:
            partition: Topic and number.
            wanted: Offsets.
            patience: Longest wait. [s]
            announced: Whether the records are known to be there: if they lie behind the partition's
                end, they are waited for.

        Raises:
            MissingError: Kafka does not have them, or does not answer.
        """
        first = self._go_to(partition, wanted.start)
        found: list[Message] = []
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            message, first = first or self._consumer.poll(min(0.5, left)), None
            if message is None or message.partition() != partition[1] or message.topic() != partition[0]:
                continue
            offset = message.offset() or 0
            if (error := message.error()) is not None:
                if self._is_over(error, offset, wanted.stop if announced else wanted.start):
                    return found
                continue
            self._at = offset + 1
            if offset >= wanted.start:
                found += [message] if offset in wanted else []
                if offset >= wanted.stop - 1:
                    return found
        raise MissingError(
            f"{partition[0]}[{partition[1]}]: no answer about {wanted.start} to {wanted.stop - 1}"
        )

    def one(self, partition: TopicPartition, offset: int) -> Message:
        """Return the record at *offset*.

        Raises:
            MissingError: Kafka does not have it, or does not answer.
        """
        if not (found := self.fetch(partition, range(offset, offset + 1))):
            raise MissingError(f"{partition[0]}[{partition[1]}]@{offset} is not in Kafka any more")
        return found[0]

    def close(self) -> None:
        """Leave Kafka."""
        if "_consumer" in vars(self):
            self._consumer.close()

    def _go_to(self, partition: TopicPartition, offset: int) -> Message | None:
        """Seek *offset*; return the record there or behind, where it came with the last batch."""
        while self._assigned == partition and self._at <= offset < self._at + AHEAD:
            message = self._consumer.poll(0)
            if message is None or message.error() is not None:
                break
            self._at = (message.offset() or 0) + 1
            if self._at > offset:
                return message
        self._at, place = offset, TopicPartitionOffset(*partition, offset)
        try:
            if self._assigned == partition:
                self._consumer.seek(place)
                return None
        except KafkaException:  # just assigned, or without a leader: assigning does it
            pass
        self._consumer.assign([place])
        self._assigned = partition
        return None

    @staticmethod
    def _is_over(error: KafkaError, offset: int, end: int) -> bool:
        if error.code() == KafkaError._PARTITION_EOF:
            return offset >= end
        if error.code() in TRANSIENT_ERRORS:
            return False
        raise MissingError(error.str())
