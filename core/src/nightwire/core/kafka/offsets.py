"""Where partitions begin and end; one request for many, since a thousand take minutes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from nightwire.core.kafka.clients import STARTUP_ERRORS, consumer, error_code, retry_while_unavailable

TopicPartition = tuple[str, int]
"""Topic and partition."""


class Watermarks(NamedTuple):
    """The offset of a partition's first record, and the one after its last."""

    low: int
    high: int


FIRST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
END = OffsetSpec.latest()  # type: ignore[no-untyped-call]
NEWEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
ANOTHER_LEADS = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
"""Errors of who goes by what it remembers of a topic, as librdkafka does for 15 minutes."""


def list_offsets(
    client: AdminClient,
    partitions: Iterable[TopicPartition],
    spec: OffsetSpec,
    *,
    committed: bool = False,
    timeout: float = 10.0,
) -> dict[TopicPartition, Any]:
    """Return the `ListOffsetsResultInfo` (offset, timestamp [ms]) of each of *partitions*.

    Args:
        client: Whom to ask.
        partitions: Those that are asked for; they exist.
        spec: `FIRST` record, `END` (the offset after the last), or `NEWEST` by timestamp.
        committed: Leave out open transactions, which are not readable yet.
        timeout: Longest wait. [s]

    Raises:
        KafkaException: Kafka does not answer, or one of *partitions* does not exist.
    """
    wanted = {TopicPartitionOffset(*partition): spec for partition in partitions}
    if not wanted:
        return {}
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

    def ask() -> dict[TopicPartition, Any]:
        asked = client.list_offsets(wanted, isolation_level=isolation, request_timeout=timeout)
        return {(at.topic, at.partition): future.result() for at, future in asked.items()}

    try:
        return ask()
    except KafkaException as error:
        if error_code(error) not in ANOTHER_LEADS:
            raise
        client.list_topics(timeout=timeout)
        return ask()


def all_watermarks(
    client: AdminClient, partitions: Iterable[TopicPartition], *, timeout: float = 10.0
) -> dict[TopicPartition, Watermarks]:
    """Return the watermarks of *partitions*, by two requests of `list_offsets`."""
    wanted = list(partitions)
    low = list_offsets(client, wanted, FIRST, timeout=timeout)
    high = list_offsets(client, wanted, END, timeout=timeout)
    return {one: Watermarks(low[one].offset, high[one].offset) for one in wanted}


def watermarks(reader: Consumer, topic: str, partition: int, *, patience: float = 10.0) -> Watermarks:
    """Return a partition's first offset, and the one after its last; wait while Kafka is away.

    A new partition has a leader in the metadata a moment before the leader knows it.  Where a
    leader has died, librdkafka asks again by what it remembers of the topic, for up to a quarter of
    an hour: so after each failure the topic is looked up anew.

    Raises:
        KafkaException: Kafka does not answer for *patience* [s], or there is no such partition.
    """
    asked = TopicPartitionOffset(topic, partition)

    def ask() -> tuple[int, int]:
        try:
            return reader.get_watermark_offsets(asked, timeout=10, cached=False)
        except KafkaException as error:
            if error_code(error) in STARTUP_ERRORS:
                with suppress(KafkaException):
                    reader.list_topics(topic, timeout=10)
            raise

    return Watermarks(*retry_while_unavailable(ask, patience=patience))


def end_offsets(reader: Consumer, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition that has records.

    Raises:
        KafkaException: Kafka does not answer, or we may not read one of *topics*.
    """
    known = reader.list_topics(timeout=10).topics
    check_rights(reader, (topic for topic in topics if topic not in known))
    wanted = [(topic, part) for topic in topics if topic in known for part in known[topic].partitions]
    found = {partition: watermarks(reader, *partition) for partition in wanted}
    return {partition: held.high for partition, held in found.items() if held.high > held.low}


def check_rights(reader: Consumer, unseen: Iterable[str]) -> None:
    """Check that topics which Kafka does not list to us are not kept from us.

    Raises:
        KafkaException: We have no right to one of them; it is named.
    """
    for topic in unseen:
        error = reader.list_topics(topic, timeout=10).topics[topic].error
        if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise KafkaException(KafkaError(error.code(), f"no right to read {topic}"))


def end_offsets_at(
    bootstrap: str, topics: Sequence[str], *, unsettled: bool = False
) -> dict[TopicPartition, int]:
    """Return `end_offsets` by a client of its own; with *unsettled* those of open transactions too.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    with consumer(bootstrap, isolation_level="read_uncommitted" if unsettled else "read_committed") as reader:
        return end_offsets(reader, topics)
