"""Storage: Delta tables in a folder or a bucket, Kafka records as rows, Avro schemas."""

from nightwire.archive.storage.delta_table import ALERTS, INDEX, PACKETS, Table
from nightwire.archive.storage.offset_commits import FencedError, OffsetRanges
from nightwire.archive.storage.packets import (
    MAX_TIMESTAMP,
    ORIGIN_SCHEMA,
    PACKET_SCHEMA,
    Packet,
    next_offsets,
    packet_of,
    packet_rows,
    packets_in,
)
from nightwire.archive.storage.schema_store import SCHEMAS_FOLDER, SchemaStore
from nightwire.archive.storage.store import ArchiveError, StorageError, Store

__all__ = [
    "ALERTS",
    "INDEX",
    "MAX_TIMESTAMP",
    "ORIGIN_SCHEMA",
    "PACKETS",
    "PACKET_SCHEMA",
    "SCHEMAS_FOLDER",
    "ArchiveError",
    "FencedError",
    "OffsetRanges",
    "Packet",
    "SchemaStore",
    "StorageError",
    "Store",
    "Table",
    "next_offsets",
    "packet_of",
    "packet_rows",
    "packets_in",
]
