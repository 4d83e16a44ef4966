"""Overflow topics: the records of passes beyond their quotas, and the alerts that they name.

A thousand filters may cut off a hundred thousand alerts.  A record in Avro is its fields one after
the other: the fields of each filter and of each alert are encoded once, and joined for each pass.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import fastavro

from nightwire.core.kafka import TopicPartition, read_to_end
from nightwire.filters.decision.apply_quotas import Overflow
from nightwire.filters.model.messages import PassedAlert
from nightwire.filters.reading.fetch import fetch_at, range_consumer
from nightwire.schemas import AlertDecoder, Codec, SchemaRegistry, records, wire
from nightwire.schemas.topics import overflow

PARTS = {
    **dict.fromkeys(("owner", "name", "version"), "filter"),
    **dict.fromkeys(("survey", "visit", "topic", "partition", "offset", "alert"), "alert"),
    **dict.fromkeys(("rank", "time"), "pass"),
}
"""What each field of the record tells of: the filter, the alert, or both together."""


def encode_overflow(
    cut: Overflow, at: int, schema: Mapping[str, Any] = records.OVERFLOW.schema
) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield filter (``owner/name``), key and value of each record for overflow topics.  Pure.

    Filter by filter, for Kafka takes a topic's records twice as fast one after the other.

    Args:
        cut: The passes that a quota cut off.
        at: When. [ms since 1970, UTC]
        schema: Avro's, of the record.
    """
    order = sorted(range(len(cut.filter_index)), key=cut.filter_index.__getitem__)
    index: dict[str, Sequence[Any]] = {"filter": cut.filter_index, "alert": cut.alert_index, "pass": cut.rank}
    keys = {part: [some[at] for at in order] for part, some in index.items()}
    values: dict[str, Callable[[Any], Mapping[str, Any]]] = {
        "filter": lambda number: _of_filter(*cut.filters[number]),
        "alert": lambda alert: _of_alert(cut.alerts[alert]),
        "pass": lambda rank: {"rank": rank, "time": at},
    }
    columns = []
    for part, some in groupby(schema["fields"], key=lambda field: PARTS[field["name"]]):
        fields = list(some)
        codec = Codec({**schema, "fields": fields})
        about = {key: values[part](key) for key in set(keys[part])}
        encoded = {
            key: codec.encode({field["name"]: one[field["name"]] for field in fields})
            for key, one in about.items()
        }
        columns.append([encoded[key] for key in keys[part]])
    visits = {alert: str(cut.alerts[alert].visit).encode() for alert in set(cut.alert_index)}
    header = wire.frame(records.OVERFLOW.schema_id, b"")
    bodies = map(b"".join, zip(*columns, strict=True))
    for alert, number, body in zip(keys["alert"], keys["filter"], bodies, strict=True):
        yield cut.filters[number][0], visits[alert], header + body


def _of_filter(key: str, version: int) -> dict[str, Any]:
    owner, _, name = key.partition("/")
    return {"owner": owner, "name": name, "version": version}


def _of_alert(alert: PassedAlert) -> dict[str, Any]:
    return {
        "survey": alert.survey, "visit": alert.visit, "topic": alert.topic, "partition": alert.partition,
        "offset": alert.offset, "alert": alert.alert,
    }  # fmt: skip


UNSAFE = re.compile(r"[^\w.+-]+", re.ASCII)


def read_overflow(bootstrap: str, owner: str, name: str, visit: int | None = None) -> list[dict[str, Any]]:
    """Return the records of a filter's overflow, one for each position, in the order of writing.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for message in read_to_end(bootstrap, [overflow(owner, name)]):
        one = records.OVERFLOW.decode(message.value() or b"")
        if visit is None or one["visit"] == visit:
            found.setdefault((one["topic"], one["partition"], one["offset"]), one)
    return list(found.values())


def fetch_overflow(
    bootstrap: str, found: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], bytes]]:
    """Yield each alert that is still in its topic, with its record of the overflow.

    Raises:
        KafkaException: Kafka does not answer.
    """
    by_partition: dict[TopicPartition, dict[int, Mapping[str, Any]]] = {}
    for one in found:
        by_partition.setdefault((one["topic"], one["partition"]), {})[one["offset"]] = one
    consumer = range_consumer(bootstrap)
    try:
        for partition, wanted in by_partition.items():
            for message in fetch_at(consumer, partition, wanted, patience=10.0):
                yield wanted[message.offset() or 0], message.value() or b""
    finally:
        consumer.close()


def save_overflow(
    bootstrap: str, registry: str | None, found: Sequence[Mapping[str, Any]], folder: Path
) -> int:
    """Write the alerts into *folder*, a container each; return how many still were in Kafka.

    Raises:
        KafkaException: Kafka does not answer.
        UnknownSchemaError: Nobody knows an alert's schema.
    """
    folder.mkdir(parents=True, exist_ok=True)
    saved = 0
    with SchemaRegistry(registry) as known:
        decoder = AlertDecoder(known)
        for one, value in fetch_overflow(bootstrap, found):
            alert = decoder.decode(value)
            with (folder / f"{one['survey']}-{UNSAFE.sub('_', one['alert'])}.avro").open("wb") as out:
                fastavro.writer(out, dict(alert.schema), [alert.alert])
            saved += 1
    return saved
