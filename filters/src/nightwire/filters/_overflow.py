"""What passed a filter and was cut off by its cap: where it lies, and fetching it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro

from nightwire.core.kafka import read_to_end
from nightwire.filters._fetch import fetch_at, reader
from nightwire.filters._offsets import Spot
from nightwire.schemas import AlertDecoder, SchemaRegistry, records
from nightwire.schemas.topics import overflow

UNSAFE = re.compile(r"[^\w.+-]+", re.ASCII)


def cut_off(bootstrap: str, owner: str, name: str, visit: int | None = None) -> list[dict[str, Any]]:
    """Return the records of what a cap cut off, in the order in which that happened; one per alert's place.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for message in read_to_end(bootstrap, [overflow(owner, name)]):
        one = records.OVERFLOW.decode(message.value() or b"")
        if visit is None or one["visit"] == visit:
            found.setdefault((one["topic"], one["partition"], one["offset"]), one)
    return list(found.values())


def values(bootstrap: str, found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], bytes]]:
    """Yield each alert that is still in its topic, with its record of the overflow.

    Raises:
        KafkaException: Kafka does not answer.
    """
    by_spot: dict[Spot, dict[int, Mapping[str, Any]]] = {}
    for one in found:
        by_spot.setdefault((one["topic"], one["partition"]), {})[one["offset"]] = one
    consumer = reader(bootstrap)
    try:
        for spot, wanted in by_spot.items():
            for message in fetch_at(consumer, spot, wanted, patience=10.0):
                yield wanted[message.offset() or 0], message.value() or b""
    finally:
        consumer.close()


def save_all(bootstrap: str, registry: str | None, found: Sequence[Mapping[str, Any]], folder: Path) -> int:
    """Write the alerts into *folder*, one Avro object container each; return how many were still there.

    Raises:
        KafkaException: Kafka does not answer.
        UnknownSchemaError: Nobody knows an alert's schema.
    """
    folder.mkdir(parents=True, exist_ok=True)
    decoder, saved = AlertDecoder(SchemaRegistry(registry)), 0
    for one, value in values(bootstrap, found):
        alert = decoder.decode(value)
        with (folder / f"{one['survey']}-{UNSAFE.sub('_', one['alert'])}.avro").open("wb") as out:
            fastavro.writer(out, dict(alert.schema), [alert.alert])
        saved += 1
    return saved
