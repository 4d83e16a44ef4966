"""The records of what was cut off, made quickly: a thousand filters cut off a hundred thousand.  Pure.

A record in Avro is its fields one after the other.  So what is said of a filter, and what of an alert, is
encoded once, and put together for each alert that a filter's cap cut off.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

from nightwire.core.kafka import read_to_end
from nightwire.filters.decision.select import Overflow
from nightwire.filters.model.messages import PassedAlert
from nightwire.filters.model.offsets import Spot
from nightwire.filters.reading.fetch import fetch_at, range_consumer
from nightwire.schemas import AlertDecoder, Codec, SchemaRegistry, records, wire
from nightwire.schemas.topics import overflow

OF_FILTER, OF_ALERT, OF_BOTH = slice(0, 3), slice(3, 9), slice(9, None)
"""Which fields of the record tell of the filter, of the alert, and of both together."""


def encode_overflow(cut: Overflow, at: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield what goes to overflow topics: the filter (``owner/name``), the record's key and its value.

    Args:
        cut: What was cut off.
        at: When. [ms since 1970, UTC]
    """
    heads = {judge: _filter(*cut.judges[judge]) for judge in set(cut.judge)}
    middles = {hit: (_key(cut.hits[hit]), _alert(cut.hits[hit])) for hit in set(cut.hit)}
    tails = {rank: _part(OF_BOTH, {"rank": rank, "time": at}) for rank in set(cut.rank)}
    for hit, judge, rank in zip(cut.hit, cut.judge, cut.rank, strict=True):
        key, middle = middles[hit]
        body = heads[judge] + middle + tails[rank]
        yield cut.judges[judge][0], key, wire.frame(records.OVERFLOW.schema_id, body)


def _filter(key: str, version: int) -> bytes:
    owner, _, name = key.partition("/")
    return _part(OF_FILTER, {"owner": owner, "name": name, "version": version})


def _alert(hit: PassedAlert) -> bytes:
    about = {**hit._asdict(), "survey": hit.survey}
    return _part(OF_ALERT, {name: about[name] for name in _names(OF_ALERT.start, OF_ALERT.stop)})


def _key(hit: PassedAlert) -> bytes:
    return str(hit.visit).encode()


def _part(fields: slice, values: Mapping[str, Any]) -> bytes:
    return _codec(fields.start, fields.stop).encode(values)


@cache
def _names(start: int, stop: int) -> list[str]:
    return [one["name"] for one in records.OVERFLOW.schema["fields"][start:stop]]


@cache
def _codec(start: int, stop: int | None) -> Codec:
    """Return the codec of some of the record's fields."""
    schema = records.OVERFLOW.schema
    return Codec({**schema, "fields": schema["fields"][start:stop]})


UNSAFE = re.compile(r"[^\w.+-]+", re.ASCII)


def read_overflow(bootstrap: str, owner: str, name: str, visit: int | None = None) -> list[dict[str, Any]]:
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


def fetch_overflow(
    bootstrap: str, found: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], bytes]]:
    """Yield each alert that is still in its topic, with its record of the overflow.

    Raises:
        KafkaException: Kafka does not answer.
    """
    by_spot: dict[Spot, dict[int, Mapping[str, Any]]] = {}
    for one in found:
        by_spot.setdefault((one["topic"], one["partition"]), {})[one["offset"]] = one
    consumer = range_consumer(bootstrap)
    try:
        for spot, wanted in by_spot.items():
            for message in fetch_at(consumer, spot, wanted, patience=10.0):
                yield wanted[message.offset() or 0], message.value() or b""
    finally:
        consumer.close()


def save_overflow(
    bootstrap: str, registry: str | None, found: Sequence[Mapping[str, Any]], folder: Path
) -> int:
    """Write the alerts into *folder*, one Avro object container each; return how many were still there.

    Raises:
        KafkaException: Kafka does not answer.
        UnknownSchemaError: Nobody knows an alert's schema.
    """
    folder.mkdir(parents=True, exist_ok=True)
    decoder, saved = AlertDecoder(SchemaRegistry(registry)), 0
    for one, value in fetch_overflow(bootstrap, found):
        alert = decoder.decode(value)
        with (folder / f"{one['survey']}-{UNSAFE.sub('_', one['alert'])}.avro").open("wb") as out:
            fastavro.writer(out, dict(alert.schema), [alert.alert])
        saved += 1
    return saved
