"""What topics there are, how much is in them, and from when."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient
from rich.table import Table

from nightwire.consumers.source.start_offsets import Span
from nightwire.core.kafka import END, FIRST, NEWEST, TopicPartition, admin, consumer, list_offsets

PATIENCE = 15.0
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
            for name, topic in reader.list_topics(timeout=PATIENCE).topics.items()
            if not name.startswith("__")
        }
        spans = _spans(client, [(name, part) for name, parts in known.items() for part in parts])
        oldest = _oldest(reader, spans)
    finally:
        reader.close()
    newest = _newest(client, spans)
    return [_row(name, parts, spans, oldest, newest) for name, parts in sorted(known.items())]


def _row(
    name: str,
    parts: list[int],
    spans: Mapping[TopicPartition, Span],
    oldest: Mapping[TopicPartition, int],
    newest: Mapping[TopicPartition, int],
) -> TopicRow:
    spots = [(name, part) for part in parts]
    first = [oldest[spot] for spot in spots if spot in oldest]
    last = [newest[spot] for spot in spots if spot in newest]
    records = sum(spans[spot][1] - spans[spot][0] for spot in spots)
    return TopicRow(name, len(parts), records, _utc(min(first, default=None)), _utc(max(last, default=None)))


def _utc(moment: int | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment / 1000, UTC)


def _spans(client: AdminClient, spots: list[TopicPartition]) -> dict[TopicPartition, Span]:
    oldest = list_offsets(client, spots, FIRST, timeout=PATIENCE)
    ends = list_offsets(client, spots, END, timeout=PATIENCE)
    return {spot: (oldest[spot].offset, ends[spot].offset) for spot in spots}


def _newest(client: AdminClient, spans: Mapping[TopicPartition, Span]) -> dict[TopicPartition, int]:
    filled = [spot for spot, (start, end) in spans.items() if end > start]
    found = list_offsets(client, filled, NEWEST, timeout=PATIENCE)
    return {spot: info.timestamp for spot, info in found.items() if info.timestamp >= 0}


def _oldest(reader: Consumer, spans: Mapping[TopicPartition, Span]) -> dict[TopicPartition, int]:
    """Return when the first record of each partition was written. [ms]  Reads one of each."""
    found: dict[TopicPartition, int] = {}
    open_ = {spot for spot, (start, end) in spans.items() if end > start}
    reader.assign([TopicPartitionOffset(*spot, spans[spot][0]) for spot in open_])
    deadline = time.monotonic() + PATIENCE
    while open_ and time.monotonic() < deadline:
        if (message := reader.poll(0.2)) is None:
            continue
        spot = (str(message.topic()), message.partition() or 0)
        if spot in open_:
            open_.discard(spot)
            reader.incremental_unassign([TopicPartitionOffset(*spot)])
            if message.error() is None:
                found[spot] = message.timestamp()[1]
    return found


def as_text(rows: Sequence[TopicRow]) -> str:
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


def as_table(rows: Sequence[TopicRow]) -> Table:
    """Return *rows* as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("topic")
    table.add_column("partitions", justify="right")
    table.add_column("records", justify="right")
    table.add_column("oldest (UTC)")
    table.add_column("newest (UTC)")
    for row in rows:
        count = f"{row.records:,}" if row.records else "·"
        table.add_row(row.name, str(row.partitions), count, _short(row.oldest), _short(row.newest))
    return table


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
