"""Where consumer groups are, asked without joining them."""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka.clients import consumer
from nightwire.core.kafka.offsets import TopicPartition


class GroupOffsets:
    """Asks for what groups have committed, by a client of each group that never joins it.

    librdkafka's admin call for this aborts the process when a coordinator's connection breaks
    (confluentinc/librdkafka#4605, #5040).

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        client: librdkafka's properties of who asks; None for ourselves.
    """

    def __init__(self, bootstrap: str, *, client: Mapping[str, Any] | None = None) -> None:
        self._bootstrap, self._client = bootstrap, client
        self._groups: dict[str, Consumer] = {}

    def keep(self, groups: Iterable[str]) -> None:
        """Close the clients of all but *groups*."""
        for gone in self._groups.keys() - set(groups):
            self._groups.pop(gone).close()

    def committed(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout: float = 10.0
    ) -> dict[TopicPartition, int]:
        """Return the next offset of *group* in those of *partitions* where it has committed.

        Raises:
            KafkaException: Kafka does not answer within *timeout* [s], or we may not see the group.
        """
        if group not in self._groups:
            self._groups[group] = consumer(self._bootstrap, group=group, client=self._client)
        asked = [TopicPartitionOffset(*one) for one in partitions]
        found = self._groups[group].committed(asked, timeout=timeout) if asked else []
        return {(at.topic, at.partition): at.offset for at in found if at.error is None and at.offset >= 0}
