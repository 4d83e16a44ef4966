"""Avro object containers, read so that every record keeps its bytes.

Avro 1.12, "Object Container Files": a header (magic, a map of metadata, a sync marker of 16 bytes),
then blocks (how many records, how many bytes, the bytes as the codec left them, the sync marker).
"""

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nightwire.schemas.avro.generated.read import Reader
from nightwire.schemas.avro.plans.primitives import read_varint, varint, zigzag
from nightwire.schemas.avro.plans.resolve import own_plan
from nightwire.schemas.avro.plans.schema import parse
from nightwire.schemas.errors import DecodeError, SchemaError

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
"""Size of the marker behind the header and each block. [byte]"""
MAX_BLOCK = 256 << 20
"""Longest block after decompression. [byte]  A few bytes can claim terabytes."""


@dataclass(frozen=True)
class ContainerRecord:
    """One record of a container: its writer's schema, its unchanged Avro body, and its value."""

    schema: dict[str, Any]
    body: bytes
    record: dict[str, Any]


class _ByteSource:
    """Bytes to be taken off the front, for the header and the frame of each block."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, length: int, what: str) -> bytes:
        if length < 0 or length > len(self._data) - self.at:
            left = len(self._data) - self.at
            raise DecodeError(
                f"container cut off at byte {self.at}: {what} wants {length} bytes, {left} are left"
            )
        self.at += length
        return self._data[self.at - length : self.at]

    def take_long(self, what: str) -> int:
        try:
            number, self.at = read_varint(self._data, self.at)
        except IndexError as error:
            end = len(self._data)
            raise DecodeError(f"container cut off at byte {end}: {what} wants 1 bytes, 0 are left") from error
        except ValueError as error:
            raise DecodeError(f"container malformed at byte {self.at}: {what} is no Avro long") from error
        return zigzag(number)

    def at_end(self) -> bool:
        return self.at == len(self._data)


def container_head(schema: bytes, sync: bytes) -> bytes:
    """Return the head of a container without compression.

    Args:
        schema: The writer's schema, as JSON.
        sync: Sixteen bytes that end the head and every block.
    """
    head = {b"avro.schema": schema, b"avro.codec": b"null"}
    entries = b"".join(varint(len(part)) + part for item in head.items() for part in item)
    return b"".join((MAGIC, varint(len(head)), entries, varint(0), sync))


def container_block(body: bytes, sync: bytes) -> bytes:
    """Return a block that holds the one record of *body*."""
    return b"".join((varint(1), varint(len(body)), body, sync))


def read_container(value: bytes) -> Iterator[ContainerRecord]:
    """Yield the records of an Avro object container, their bodies unchanged.

    Records that precede a fault come out before the error does.  The schema is shared by all
    records: do not change it.

    Raises:
        DecodeError: It is no container, is cut off, has a schema that is none, a codec that nobody
            knows, a block that does not decompress or decode, or a wrong sync marker.
    """
    text, blocks = open_container(value)
    schema, reader = _schema(text)
    for block, count in blocks:
        for body, record in _records(block, count, reader):
            yield ContainerRecord(schema, body, record)


def single_body(value: bytes) -> tuple[bytes, bytes]:
    """Return the text of the schema and the Avro body in a container of one record.

    Raises:
        DecodeError: As `read_container`, or it holds not exactly one record.
    """
    text, blocks = open_container(value)
    found = [(block, count) for block, count in blocks if count or block]
    if sum(count for _, count in found) != 1 or len(found) != 1:
        raise DecodeError(
            f"the container holds {sum(count for _, count in found)} records; a message is one alert"
        )
    return text, found[0][0]


def open_container(value: bytes) -> tuple[bytes, Iterator[tuple[bytes, int]]]:
    """Return the text of a container's schema, and its blocks: bytes and number of records.

    Raises:
        DecodeError: It is no container, or its header is damaged.  The iterator: a block is.
    """
    source = _ByteSource(value)
    if source.take(len(MAGIC), "the magic") != MAGIC:
        raise DecodeError(f"not an Avro container: starts with {value[:4]!r}, not {MAGIC!r}")
    metadata = _metadata(source)
    if "avro.schema" not in metadata:
        raise DecodeError("container without a schema: the header has no avro.schema")
    decompress = _decompressor(metadata.get("avro.codec", b"null"))
    sync = source.take(SYNC_SIZE, "the sync marker")
    _schema(metadata["avro.schema"])  # refuses what is none before any block is looked at
    return metadata["avro.schema"], _blocks(source, sync, decompress)


def _blocks(
    source: _ByteSource, sync: bytes, decompress: Callable[[bytes], bytes]
) -> Iterator[tuple[bytes, int]]:
    while not source.at_end():
        yield _block(source, sync, decompress)


def container_schema(text: bytes) -> dict[str, Any]:
    """Return the schema in a container's header.

    Raises:
        DecodeError: It is not that of a record.
    """
    return _schema(text)[0]


def _metadata(source: _ByteSource) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    while count := source.take_long("the header"):
        if count < 0:  # a negative count is followed by the size of the map's block
            source.take_long("the header")
        for _ in range(abs(count)):
            key = source.take(source.take_long("a header key"), "a header key").decode(errors="replace")
            metadata[key] = source.take(source.take_long(f"header {key}"), f"header {key}")
    return metadata


@lru_cache(maxsize=64)
def _schema(text: bytes) -> tuple[dict[str, Any], Reader]:
    try:
        schema = json.loads(text)
        parsed = parse(schema)
    except (ValueError, SchemaError) as error:
        raise DecodeError(f"the container's schema cannot be used: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise DecodeError("the container's schema is not that of a record")
    return schema, Reader(str(parsed["name"]), own_plan(parsed))


def _block(source: _ByteSource, sync: bytes, decompress: Callable[[bytes], bytes]) -> tuple[bytes, int]:
    start = source.at
    count = source.take_long("a block's count of records")
    packed = source.take(source.take_long("a block's size"), "a block")
    if source.take(SYNC_SIZE, "a block's sync marker") != sync:
        raise DecodeError(f"wrong sync marker after the block at byte {start}: the container is damaged")
    if count < 0:
        raise DecodeError(f"the block at byte {start} claims {count} records")
    try:
        block = decompress(packed)
    except (zlib.error, OSError, lzma.LZMAError, ValueError, EOFError, MemoryError) as error:
        raise DecodeError(f"the block at byte {start} does not decompress: {error}") from error
    return block, count


def _records(block: bytes, count: int, reader: Reader) -> Iterator[tuple[bytes, dict[str, Any]]]:
    start = 0
    for number in range(count):
        try:
            record, end = reader.read(block, start)
        except DecodeError as error:
            raise DecodeError(f"record {number} of {count} in its block: {error}") from error
        yield block[start:end], record
        start = end
    if start != len(block):
        raise DecodeError(f"a block of {count} records goes on for {len(block) - start} bytes after the last")


def _decompressor(name: bytes) -> Callable[[bytes], bytes]:
    codec = name.decode(errors="replace")
    if codec not in DECOMPRESSORS:
        raise DecodeError(
            f"unknown codec {codec!r} in the container's header; known: {', '.join(DECOMPRESSORS)}"
        )
    return DECOMPRESSORS[codec]


def _null(packed: bytes) -> bytes:
    return packed


def _deflate(packed: bytes) -> bytes:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)  # raw, without zlib's header
    block = inflater.decompress(packed, MAX_BLOCK)
    if inflater.unconsumed_tail:
        raise ValueError(f"more than {MAX_BLOCK} bytes")
    if not inflater.eof:
        raise ValueError("it breaks off")
    return block


def _snappy(packed: bytes) -> bytes:
    import pyarrow as pa

    try:
        size, _ = read_varint(packed, 0)  # of what was compressed
    except IndexError as error:
        raise ValueError("it has no length") from error
    if size > MAX_BLOCK or len(packed) < 4:
        raise ValueError(f"it claims {size} bytes")
    block = bytes(pa.Codec("snappy").decompress(packed[:-4], size, asbytes=True))
    if zlib.crc32(block) != int.from_bytes(packed[-4:], "big"):
        raise ValueError("its checksum is wrong")
    return block


def _zstandard(packed: bytes) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        block = bytes(stream.read(MAX_BLOCK + 1))
    if len(block) > MAX_BLOCK:
        raise ValueError(f"more than {MAX_BLOCK} bytes")
    return block


def _bzip2(packed: bytes) -> bytes:
    return _bounded(bz2.BZ2Decompressor(), packed)


def _xz(packed: bytes) -> bytes:
    return _bounded(lzma.LZMADecompressor(), packed)


def _bounded(decompressor: bz2.BZ2Decompressor | lzma.LZMADecompressor, packed: bytes) -> bytes:
    block = decompressor.decompress(packed, MAX_BLOCK)
    if not decompressor.eof:
        raise ValueError(f"it breaks off, or holds more than {MAX_BLOCK} bytes")
    return block


DECOMPRESSORS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": _null,
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": _bzip2,
    "xz": _xz,
}
