"""Queries of the archive, and the formats of the answers."""

from nightwire.archive.querying.archive import Archive, parse_columns
from nightwire.archive.querying.avro_containers import avro_parts
from nightwire.archive.querying.formats import FORMATS, flatten, votable_error
from nightwire.archive.querying.query_workers import BusyError
from nightwire.archive.querying.sql_engine import QueryError

__all__ = [
    "FORMATS",
    "Archive",
    "BusyError",
    "QueryError",
    "avro_parts",
    "flatten",
    "parse_columns",
    "votable_error",
]
