"""The filter language: what a filter may be, and its closed part, which is data and runs over columns.

Everything here is pure: no Kafka, no Spark.  It may be imported wherever a filter is judged, inside the
engine or not.  What needs NumPy is imported when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nightwire.filters.language.program import NotCompilable, Program
from nightwire.filters.language.python.compile import compile_python
from nightwire.filters.language.source import (
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
    rank_of,
)
from nightwire.filters.language.sql import compile_sql

if TYPE_CHECKING:
    from nightwire.filters.language.vector.evaluate import Verdicts, evaluate, evaluate_all

__all__ = [
    "DUNDERS",
    "FILENAME",
    "FORBIDDEN",
    "MAX_SOURCE",
    "MODULES",
    "FilterError",
    "NotCompilable",
    "Predicate",
    "Program",
    "Verdicts",
    "compile_filter",
    "compile_python",
    "compile_sql",
    "evaluate",
    "evaluate_all",
    "fault_text",
    "fields_read",
    "objections",
    "rank_of",
]


def __getattr__(name: str) -> Any:
    if name not in ("Verdicts", "evaluate", "evaluate_all"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.vector.evaluate"), name)
