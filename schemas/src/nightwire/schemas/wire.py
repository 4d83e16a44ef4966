"""What a message looks like on the wire, without any I/O.

Confluent's wire format is a zero byte, the schema's id (four bytes, big-endian), and the Avro body.
Some surveys send a whole Avro object container instead, its schema inside: `container_head` and
`container_block` make those, `read_container` takes them apart.
"""

import struct
from typing import TypeVar

from nightwire.schemas.avro.container import (
    MAGIC,
    SYNC_SIZE,
    ContainerRecord,
    container_block,
    container_head,
    read_container,
)
from nightwire.schemas.avro.plans.primitives import varint
from nightwire.schemas.errors import DecodeError

__all__ = [
    "HEADER",
    "SYNC_SIZE",
    "ContainerRecord",
    "container_block",
    "container_head",
    "frame",
    "is_container",
    "read_container",
    "unframe",
    "varint",
]

Bytes = TypeVar("Bytes", bytes, memoryview)

HEADER = struct.Struct(">BI")
"""Magic byte zero, schema id; Rubin's packets begin so (``00 00000384`` is version 9.0)."""


def frame(schema_id: int, body: bytes) -> bytes:
    """Return *body* in wire format.

    Raises:
        ValueError: The id does not fit into four bytes.
    """
    try:
        return HEADER.pack(0, schema_id) + body
    except struct.error as error:
        raise ValueError(f"schema id {schema_id} does not fit into four bytes") from error


def unframe(value: Bytes) -> tuple[int, Bytes]:
    """Return the schema id and the Avro body of a message in wire format; of a view, a view.

    Raises:
        DecodeError: It is not in wire format.
    """
    if len(value) < HEADER.size:
        raise DecodeError(f"not in wire format: {len(value)} bytes, the header alone has {HEADER.size}")
    magic, schema_id = HEADER.unpack_from(value)
    if magic:
        raise DecodeError(f"not in wire format: starts with {bytes(value[:4])!r}, not with a zero byte")
    return schema_id, value[HEADER.size :]


def is_container(value: bytes) -> bool:
    """Whether *value* begins as an Avro object container does."""
    return value.startswith(MAGIC)
