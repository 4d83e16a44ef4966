"""Where partitions begin and end, asked for many at once: one by one, a thousand of them take minutes."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

TopicPartition = tuple[str, int]
"""Topic and partition."""


class Watermarks(NamedTuple):
    """What a partition holds: the offset of its first record, and the one after its last."""

    low: int
    high: int


FIRST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
END = OffsetSpec.latest()  # type: ignore[no-untyped-call]
NEWEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


def list_offsets(
    client: AdminClient,
    spots: Iterable[TopicPartition],
    spec: OffsetSpec,
    *,
    committed: bool = False,
    timeout: float = 10.0,
) -> dict[TopicPartition, Any]:
    """Return the `ListOffsetsResultInfo` (offset, timestamp [ms]) of each of *spots*.

    Args:
        client: Whom to ask.
        spots: Partitions that exist.
        spec: `FIRST` record, `END` (the offset after the last), or `NEWEST` by timestamp.
        committed: Whether transactions that are still open are left out: nobody could read them yet.
        timeout: Longest wait. [s]

    Raises:
        KafkaException: Kafka does not answer, or one of *spots* does not exist.
    """
    wanted = {TopicPartitionOffset(*spot): spec for spot in spots}
    if not wanted:
        return {}
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = client.list_offsets(wanted, isolation_level=isolation, request_timeout=timeout)
    return {(at.topic, at.partition): future.result() for at, future in asked.items()}


def all_watermarks(
    client: AdminClient, partitions: Iterable[TopicPartition], *, timeout: float = 10.0
) -> dict[TopicPartition, Watermarks]:
    """Return what each of *partitions* holds; as `list_offsets`, of which it takes two."""
    wanted = list(partitions)
    low = list_offsets(client, wanted, FIRST, timeout=timeout)
    high = list_offsets(client, wanted, END, timeout=timeout)
    return {one: Watermarks(low[one].offset, high[one].offset) for one in wanted}
