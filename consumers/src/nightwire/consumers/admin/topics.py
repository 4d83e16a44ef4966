"""The list of topics: how much is in them, and from when; for people and for programs."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.core.cli import Column, Listing
from nightwire.core.kafka import (
    NEWEST,
    TopicPartition,
    Watermarks,
    admin,
    all_watermarks,
    consumer,
    list_offsets,
)

TIMEOUT = 15.0
"""Longest wait for an answer. [s]"""


@dataclass(frozen=True)
class TopicRow:
    """One topic.

    Attributes:
        name: Its name.
        partitions: How many it has.
        records: Offsets it spans: after compaction fewer records are left.
        oldest: When the oldest record was written. [UTC]
        newest: When the newest was. [UTC]
    """

    name: str
    partitions: int
    records: int
    oldest: datetime | None = None
    newest: datetime | None = None


def list_topics(bootstrap: str) -> list[TopicRow]:
    """Return the topics of a real Kafka by name, without its internal ones.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    reader = consumer(bootstrap, enable_partition_eof=True, queued_max_messages_kbytes=4096)
    client = admin(bootstrap)
    try:
        known = {
            name: sorted(topic.partitions)
            for name, topic in reader.list_topics(timeout=TIMEOUT).topics.items()
            if not name.startswith("__")
        }
        held = all_watermarks(
            client,
            [(name, number) for name, numbers in known.items() for number in numbers],
            timeout=TIMEOUT,
        )
        oldest = _oldest_times(reader, held)
    finally:
        reader.close()
    newest = _newest_times(client, held)
    return [_row(name, numbers, held, oldest, newest) for name, numbers in sorted(known.items())]


def _row(
    name: str,
    numbers: list[int],
    held: Mapping[TopicPartition, Watermarks],
    oldest: Mapping[TopicPartition, int],
    newest: Mapping[TopicPartition, int],
) -> TopicRow:
    partitions = [(name, number) for number in numbers]
    first = min((oldest[one] for one in partitions if one in oldest), default=None)
    last = max((newest[one] for one in partitions if one in newest), default=None)
    records = sum(held[one].high - held[one].low for one in partitions)
    return TopicRow(name, len(numbers), records, _utc(first), _utc(last))


def _utc(time_ms: int | None) -> datetime | None:
    return None if time_ms is None else datetime.fromtimestamp(time_ms / 1000, UTC)


def _newest_times(
    client: AdminClient, held: Mapping[TopicPartition, Watermarks]
) -> dict[TopicPartition, int]:
    filled = [partition for partition, marks in held.items() if marks.high > marks.low]
    found = list_offsets(client, filled, NEWEST, timeout=TIMEOUT)
    return {partition: info.timestamp for partition, info in found.items() if info.timestamp >= 0}


def _oldest_times(reader: Consumer, held: Mapping[TopicPartition, Watermarks]) -> dict[TopicPartition, int]:
    """Return when the first record of each partition was written. [ms]  Reads one of each."""
    found: dict[TopicPartition, int] = {}
    missing = {partition for partition, marks in held.items() if marks.high > marks.low}
    reader.assign([TopicPartitionOffset(*partition, held[partition].low) for partition in missing])
    deadline = time.monotonic() + TIMEOUT
    while missing and time.monotonic() < deadline:
        if (message := reader.poll(0.2)) is None:
            continue
        partition = (str(message.topic()), message.partition() or 0)
        if partition in missing:
            missing.discard(partition)
            reader.incremental_unassign([TopicPartitionOffset(*partition)])
            if message.error() is None:
                found[partition] = message.timestamp()[1]
    return found


def topics_json(rows: Sequence[TopicRow]) -> str:
    """Return *rows* as a JSON list; times are ISO 8601, UTC."""
    return json.dumps(
        [
            {
                "topic": row.name,
                "partitions": row.partitions,
                "records": row.records,
                "oldest": _iso(row.oldest),
                "newest": _iso(row.newest),
            }
            for row in rows
        ],
        indent=2,
    )


TOPIC_COLUMNS = (
    Column("topic"),
    Column("partitions", 3, number=True),
    Column("records", 1, number=True),
    Column("oldest (UTC)", 4),
    Column("newest (UTC)", 2),
)


def topics_table(rows: Sequence[TopicRow], *, wide: bool = False) -> Listing:
    """Return *rows* as a table."""
    cells = [(row.name, row.partitions, row.records, _short(row.oldest), _short(row.newest)) for row in rows]
    return Listing(TOPIC_COLUMNS, cells, wide)


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
