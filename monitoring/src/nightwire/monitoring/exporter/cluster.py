"""What the exporter asks Kafka: brokers, partitions, positions of groups, and the accounts."""

from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.core.accounting import Account, from_record
from nightwire.core.kafka import (
    TRANSIENT_ERRORS,
    GroupOffsets,
    TopicPartition,
    admin,
    all_watermarks,
    consumer,
)
from nightwire.monitoring.exporter.pipeline_state import ClusterState
from nightwire.schemas import records
from nightwire.schemas.topics import ACCOUNTS

INTERNAL = "__"
"""Kafka's own topics begin so; they are left out."""


class ClusterObserver:
    """Asks Kafka for its state.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``
        timeout: Longest wait for an answer. [s]
    """

    def __init__(self, bootstrap: str, *, timeout: float = 10.0) -> None:
        self._client: AdminClient = admin(bootstrap)
        self._offsets = GroupOffsets(bootstrap)
        self._timeout = timeout

    def observe(self) -> ClusterState:
        """Return Kafka as it is now.

        Raises:
            KafkaException: Kafka did not answer.
        """
        known = self._client.list_topics(timeout=self._timeout)
        partitions = {
            (name, number): partition
            for name, topic in known.topics.items()
            if not name.startswith(INTERNAL)
            for number, partition in topic.partitions.items()
        }
        led = [one for one, partition in partitions.items() if partition.leader >= 0]
        return ClusterState(
            brokers=len(known.brokers),
            offline=len(partitions) - len(led),
            under_replicated=sum(len(part.isrs) < len(part.replicas) for part in partitions.values()),
            held=all_watermarks(self._client, led, timeout=self._timeout),
            committed=self._committed(led),
        )

    def _committed(self, partitions: list[TopicPartition]) -> dict[str, dict[TopicPartition, int]]:
        known = self._client.list_consumer_groups(request_timeout=self._timeout).result()
        groups = sorted(group.group_id for group in known.valid)
        self._offsets.keep(groups)
        return {one: self._offsets.committed(one, partitions, timeout=self._timeout) for one in groups}


class AccountsFollower:
    """Reads `accounts` from its beginning and on as it grows.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``
    """

    def __init__(self, bootstrap: str) -> None:
        self._reader = consumer(bootstrap)
        self._assigned = False
        self._latest: dict[Any, Account] = {}

    def follow(self, idle: float = 1.0) -> list[Account]:
        """Return the last account of each key so far, ordered by key.

        Args:
            idle: Time without a new record after which the end counts as reached. [s]

        Raises:
            KafkaException: Kafka did not answer, or the offsets that were read are gone.
        """
        if not self._assigned:
            self._assign()
        while self._assigned and (message := self._reader.poll(idle)) is not None:
            if (error := message.error()) is not None:
                if error.code() not in TRANSIENT_ERRORS:
                    raise KafkaException(error)
                break
            if (value := message.value()) is not None:
                account = from_record(records.ACCOUNT.decode(value))
                self._latest[account.key] = account
        return sorted(self._latest.values(), key=lambda account: account.key)

    def close(self) -> None:
        """Stop reading."""
        self._reader.close()

    def _assign(self) -> None:
        topic = self._reader.list_topics(ACCOUNTS, timeout=10).topics[ACCOUNTS]
        if topic.error is None:
            self._reader.assign(
                [TopicPartitionOffset(ACCOUNTS, part, OFFSET_BEGINNING) for part in topic.partitions]
            )
            self._assigned = True
