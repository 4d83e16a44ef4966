"""The filter language: what a filter may be, and its closed part, which is data and runs over columns.

Everything here is pure: no Kafka, no Spark.  It may be imported wherever a filter is judged, inside the
engine or not.
"""

from nightwire.filters.language._source import (
    DUNDERS,
    FILENAME,
    FORBIDDEN,
    MAX_SOURCE,
    MODULES,
    FilterError,
    Predicate,
    compile_filter,
    fault_text,
    fields_read,
    objections,
)

__all__ = [
    "DUNDERS",
    "FILENAME",
    "FORBIDDEN",
    "MAX_SOURCE",
    "MODULES",
    "FilterError",
    "Predicate",
    "compile_filter",
    "fault_text",
    "fields_read",
    "objections",
]
