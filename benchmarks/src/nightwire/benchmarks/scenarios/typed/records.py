"""Typed records that grow: a number, some text, and doubles that make the size.  Pure."""

from typing import Any

import numpy as np

from nightwire.schemas import Codec
from nightwire.schemas.wire import HEADER, frame

Record = dict[str, Any]

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "wind",
    "namespace": "nightwire.bench",
    "fields": [
        {"name": "step", "type": "int"},
        {"name": "text", "type": "string"},
        {"name": "velocity", "type": {"type": "array", "items": "double"}},
    ],
}
OTHER: dict[str, Any] = {
    "type": "record",
    "name": "wind",
    "namespace": "nightwire.bench",
    "fields": [
        {"name": "wind_velocity", "aliases": ["velocity"], "type": {"type": "array", "items": "double"}},
        {"name": "step", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
"""What another receiver wants of it: renamed, widened, left out, added, in another order."""
SCHEMA_ID = 1
DOUBLE = 8
"""[byte]"""
BESIDE = 16
"""Room for all but the doubles, at least. [byte]"""
DISTINCT = 8
"""Records of a size that are taken in turn."""


def records_of(size: int) -> list[Record]:
    """Return distinct records of *size* [byte] in Kafka; the text takes what doubles leave.

    Raises:
        ValueError: No record is so small.
    """
    codec, many = Codec(SCHEMA), (size - BESIDE) // DOUBLE
    if many < 1:
        raise ValueError(f"no record has {size} bytes; the smallest has {BESIDE + DOUBLE}")
    noise = np.random.default_rng(size)
    plain = [
        {"step": step, "text": "", "velocity": noise.standard_normal(many).tolist()}
        for step in range(DISTINCT)
    ]
    return [one | {"text": "." * (size - len(value_of(one, codec)))} for one in plain]


def value_of(record: Record, codec: Codec) -> bytes:
    """Return *record* as a value in Kafka, in wire format."""
    return frame(SCHEMA_ID, codec.encode(record))


def body_size(size: int) -> int:
    """Return the size of the Avro body in a value of *size*. [byte]"""
    return size - HEADER.size
