"""One event as it is delivered, and the record that it comes from."""

from typing import NamedTuple

from nightwire.core.kafka import TopicPartition

Positions = dict[TopicPartition, int]
"""The next offset to read, per topic and partition."""


class Event(NamedTuple):
    """One event to be delivered, and its record.

    Attributes:
        document: The packet as it is sent; empty where only its existence is known.
        deliverable: False for a record that is not sent: a copy of an earlier event.
        time: The record's time in Kafka. [ms since 1970]
        retracts: The events that it retracts, of those that are known.
        meets: The conditions of feeds that hold on it; None where none was judged.
    """

    topic: str
    partition: int
    offset: int
    ivorn: str
    role: str
    document: bytes
    deliverable: bool = True
    time: int = 0
    retracts: "tuple[Event, ...]" = ()
    meets: frozenset[str] | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return (self.topic, self.partition)
