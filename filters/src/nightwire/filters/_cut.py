"""The records of what was cut off, made quickly: a thousand filters cut off a hundred thousand.  Pure.

A record in Avro is its fields one after the other.  So what is said of a filter, and what of an alert, is
encoded once, and put together for each alert that a filter's cap cut off.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from nightwire.filters._choice import Cut
from nightwire.filters._rows import Hit
from nightwire.schemas import Codec, records, wire

OF_FILTER, OF_ALERT, OF_BOTH = slice(0, 3), slice(3, 9), slice(9, None)
"""Which fields of the record tell of the filter, of the alert, and of both together."""


def overflow_records(cut: Cut, at: int) -> Iterator[tuple[str, bytes, bytes]]:
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


def _alert(hit: Hit) -> bytes:
    about = {**hit._asdict(), "survey": hit.survey}
    return _part(OF_ALERT, {name: about[name] for name in _names(OF_ALERT.start, OF_ALERT.stop)})


def _key(hit: Hit) -> bytes:
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
