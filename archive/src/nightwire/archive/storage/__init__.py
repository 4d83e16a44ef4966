"""Where rows lie: Delta tables in a folder or a bucket, whole records, schemas."""

from nightwire.archive.storage.records import (
    LATEST,
    SCHEMA,
    WholeRecord,
    next_offsets,
    record_of,
    record_rows,
    records_in,
)
from nightwire.archive.storage.schemas import FOLDER, KeptSchemas
from nightwire.archive.storage.store import ArchiveError, StorageError, Store
from nightwire.archive.storage.table import (
    ALERTS,
    INDEX,
    PACKETS,
    FencedError,
    Span,
    Table,
)

__all__ = [
    "ALERTS",
    "FOLDER",
    "INDEX",
    "LATEST",
    "PACKETS",
    "SCHEMA",
    "ArchiveError",
    "FencedError",
    "KeptSchemas",
    "Span",
    "StorageError",
    "Store",
    "Table",
    "WholeRecord",
    "next_offsets",
    "record_of",
    "record_rows",
    "records_in",
]
