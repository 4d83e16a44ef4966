"""Where rows lie: Delta tables in a folder or a bucket, whole records, schemas."""

from nightwire.archive.storage.place import ArchiveError, Place, StorageError
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
    "Place",
    "Span",
    "StorageError",
    "Table",
    "WholeRecord",
    "next_offsets",
    "record_of",
    "record_rows",
    "records_in",
]
