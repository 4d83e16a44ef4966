"""Storage: Delta tables in a folder or a bucket, Kafka records as rows, Avro schemas."""

from nightwire.archive.storage.records import (
    MAX_TIMESTAMP,
    RECORD_SCHEMA,
    WholeRecord,
    next_offsets,
    record_of,
    record_rows,
    records_in,
)
from nightwire.archive.storage.schema_store import SCHEMAS_FOLDER, SchemaStore
from nightwire.archive.storage.store import ArchiveError, StorageError, Store
from nightwire.archive.storage.table import ALERTS, INDEX, PACKETS, FencedError, OffsetRange, Table

__all__ = [
    "ALERTS",
    "INDEX",
    "MAX_TIMESTAMP",
    "PACKETS",
    "RECORD_SCHEMA",
    "SCHEMAS_FOLDER",
    "ArchiveError",
    "FencedError",
    "OffsetRange",
    "SchemaStore",
    "StorageError",
    "Store",
    "Table",
    "WholeRecord",
    "next_offsets",
    "record_of",
    "record_rows",
    "records_in",
]
