"""Packets: Kafka records, byte for byte, as rows and back.  Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from nightwire.core.kafka import TopicPartition
from nightwire.schemas import wire

HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
PACKET_SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("schema_id", pa.int64()),
        ("key", pa.binary()),
        ("headers", HEADERS),
        ("value", pa.binary()),
    ]
)
"""Columns of packets; *day* is that of *timestamp*, *schema_id* null without wire header."""
ORIGIN_SCHEMA = pa.schema(
    [PACKET_SCHEMA.field(name) for name in ("partition", "offset", "timestamp", "schema_id")]
)
"""Those of them that rows of alerts have too."""

MAX_TIMESTAMP = 253_402_214_400_000
"""9999-12-31, where calendars end: later timestamps are set to this. [ms]"""

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Packet:
    """A Kafka record, byte for byte.

    Attributes:
        topic: Its topic.
        partition: The partition's number.
        offset: Its offset.
        timestamp: Its time. [ms since 1970, UTC]
        key: Its key.
        headers: Names and values, in their order.
        value: Its value; None for a tombstone.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    headers: Headers
    value: bytes | None

    @property
    def schema_id(self) -> int | None:
        """The schema id of the wire format; None for a value without its header."""
        if self.value is None or len(self.value) < wire.HEADER.size or self.value[0]:
            return None
        return wire.unframe(self.value)[0]

    @property
    def source(self) -> TopicPartition:
        """Its topic and partition."""
        return self.topic, self.partition

    @property
    def time(self) -> datetime:
        """Its timestamp, as a time."""
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)

    @property
    def origin(self) -> str:
        """Its topic, partition and offset: ``topic[partition]@offset``."""
        return f"{self.topic}[{self.partition}]@{self.offset}"


def packet_of(message: Message) -> Packet:
    """Return *message* as a packet."""
    pairs: Any = message.headers() or ()
    headers = [(name, text.encode() if isinstance(text, str) else text) for name, text in pairs]
    origin = str(message.topic()), message.partition() or 0, message.offset() or 0
    time = min(max(0, message.timestamp()[1]), MAX_TIMESTAMP)
    return Packet(*origin, time, message.key(), headers, message.value())


COLUMNS: Mapping[str, Callable[[Packet], Any]] = {
    "day": lambda one: one.time.date(),
    "timestamp": lambda one: one.time,
    "headers": lambda one: [{"name": name, "value": value} for name, value in one.headers],
} | {name: attrgetter(name) for name in ("partition", "offset", "schema_id", "key", "value")}
"""The values of columns of packets."""


def packet_rows(packets: Sequence[Packet], schema: Any = PACKET_SCHEMA) -> Any:
    """Return *packets* as rows of *schema*, which has columns of `PACKET_SCHEMA`."""
    arrays = [pa.array(map(COLUMNS[field.name], packets), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def packet_tables(packets: Sequence[Packet], schema: Any, count: int) -> Iterator[Any]:
    """Yield the rows of *packets* in tables of *count*."""
    for first in range(0, len(packets), count):
        yield packet_rows(packets[first : first + count], schema)


def by_folder(packets: Iterable[Packet]) -> Iterator[tuple[tuple[dict[str, str], str], list[Packet]]]:
    """Yield each partition of the table `packets`, its values and its folder, and its packets."""
    found: dict[tuple[str, int], list[Packet]] = {}
    for one in packets:
        found.setdefault((one.time.date().isoformat(), one.partition), []).append(one)
    for (day, number), some in found.items():
        yield ({"day": day, "partition": str(number)}, f"day={day}/partition={number}"), some


def statistics(packets: Sequence[Packet], count: int) -> dict[str, Any]:
    """Return Delta's statistics of a file of *packets*, of which there are *count*."""
    offsets, times = [one.offset for one in packets], [one.time for one in packets]
    return {
        "numRecords": count,
        "minValues": {"offset": min(offsets), "timestamp": min(times)},
        "maxValues": {"offset": max(offsets), "timestamp": max(times)},
        "nullCount": {"offset": 0, "timestamp": 0},
    }


def packets_in(topic: str, rows: Any) -> Iterator[Packet]:
    """Yield the packets of *topic* that are in *rows* of `PACKET_SCHEMA`."""
    for row in rows.to_pylist():
        headers = [(one["name"], one["value"]) for one in row["headers"] or ()]
        time_ms = round(row["timestamp"].timestamp() * 1000)
        yield Packet(topic, row["partition"], row["offset"], time_ms, row["key"], headers, row["value"])


def next_offsets(packets: Iterable[Packet]) -> dict[TopicPartition, int]:
    """Return the offset after the last of *packets*, for each partition."""
    found: dict[TopicPartition, int] = {}
    for one in packets:
        found[one.source] = max(found.get(one.source, 0), one.offset + 1)
    return found
