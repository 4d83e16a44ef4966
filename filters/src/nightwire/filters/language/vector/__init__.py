"""Evaluation of programs over the columns of a table, with NumPy, and of conditions on messages."""

from nightwire.filters.language.vector.condition import (
    CONTAINED,
    Condition,
    Judgement,
    NoColumn,
    Oddities,
    columns_of,
    foreign_messages,
    has_column,
    paths_read,
    schema_id,
    schemas_of,
)
from nightwire.filters.language.vector.evaluate import Verdicts, evaluate, evaluate_all

__all__ = [
    "CONTAINED",
    "Condition",
    "Judgement",
    "NoColumn",
    "Oddities",
    "Verdicts",
    "columns_of",
    "evaluate",
    "evaluate_all",
    "foreign_messages",
    "has_column",
    "paths_read",
    "schema_id",
    "schemas_of",
]
