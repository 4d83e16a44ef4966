"""Alerts of a size: what the schema demands, and one stamp that fills the rest.  Pure."""

from collections.abc import Mapping, Sequence
from hashlib import shake_256
from typing import Any

from nightwire.benchmarks.environment.alert_pool import FIRST_ID, STAMPS, Alert, patch
from nightwire.benchmarks.workers.alerts.sender import VISIT
from nightwire.schemas import Codec, sim_alert_schema
from nightwire.schemas.wire import HEADER

STAMP = STAMPS[0]
DISTINCT = 128 << 10
"""Bytes of all distinct alerts of a size: twice what lz4 looks back, so that it finds none."""
FEWEST = 4
"""Distinct alerts of a size, at least: one for each partition."""


def alerts_of(size: int, pool: Sequence[Alert]) -> list[Alert]:
    """Return distinct alerts, each a value of *size* [byte] in Kafka.

    Args:
        size: Of the value, the five bytes ahead of its Avro body included.
        pool: Alerts to begin with.

    Raises:
        ValueError: No alert has that size.
    """
    codec = Codec(sim_alert_schema())
    count = max(FEWEST, -(-DISTINCT // size))
    return [filled(lean(pool[number % len(pool)], number), size, number, codec) for number in range(count)]


def lean(alert: Alert, number: int) -> Alert:
    """Return *alert* with null wherever its schema allows it, but for the id of its object."""
    fields = {field["name"]: field for field in sim_alert_schema()["fields"]}
    new = patch(alert, number, VISIT)
    source = new["diaSource"] | _nulls(fields["diaSource"]["type"]["fields"])
    return new | _nulls(fields.values()) | {"diaSource": source | {"diaObjectId": FIRST_ID + number}}


def filled(alert: Alert, size: int, number: int, codec: Codec) -> Alert:
    """Return *alert* with a stamp of random bytes that makes it a value of *size* [byte].

    Raises:
        ValueError: It is larger without one, or just at a size that the length of a length jumps
            over.
    """
    room = size - value_size(alert | {STAMP: b""}, codec)
    stamp = shake_256(number.to_bytes(8, "big")).digest(max(0, room))
    # a longer stamp's length takes more bytes itself
    for length in range(room, max(-1, room - 4), -1):
        found = alert | {STAMP: stamp[:length]}
        if value_size(found, codec) == size:
            return found
    raise ValueError(f"no alert has {size:,} bytes; the smallest has {size - room:,}")


def value_size(alert: Mapping[str, Any], codec: Codec) -> int:
    """Return the size of *alert* as a value in Kafka. [byte]"""
    return HEADER.size + len(codec.encode(alert))


def _nulls(fields: Any) -> dict[str, None]:
    return {field["name"]: None for field in fields if "default" in field and field["default"] is None}
