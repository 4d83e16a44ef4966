"""The filter language: what a filter may be, and its closed part, which runs over columns.

Everything here is pure: no Kafka, no Spark.  It may be imported wherever a filter is judged, inside
the engine or not.  Names that need NumPy are imported when they are asked for.
"""

from typing import TYPE_CHECKING

from nightwire.filters.language.columns import NAMED, column_arguments
from nightwire.filters.language.explain import instrumented_copy, sql_conditions
from nightwire.filters.language.names.asked_fields import AskedFields, asked_fields, fields_read
from nightwire.filters.language.names.field_names import (
    SurveySchemas,
    missing_names,
    partial_names,
    schema_names,
    unknown_names,
)
from nightwire.filters.language.names.mentions import (
    all_names,
    imported_packages,
    matches_called,
    mentioned_names,
    sets_attributes,
)
from nightwire.filters.language.names.schema_fields import SchemaFields, schema_fields
from nightwire.filters.language.program import NotCompilable, Program
from nightwire.filters.language.python.compile import compile_python
from nightwire.filters.language.source import (
    FILENAME,
    MODULES,
    FilterError,
    Predicate,
    compile_filter,
    fault_text,
    objections,
    parsed,
    rank_of,
    without_surrogates,
)
from nightwire.filters.language.sql import compile_sql
from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.language.vector import (
        Condition,
        Judgement,
        Oddities,
        Verdicts,
        evaluate,
        evaluate_all,
    )

__all__ = [
    "FILENAME",
    "MODULES",
    "NAMED",
    "AskedFields",
    "Condition",
    "FilterError",
    "Judgement",
    "NotCompilable",
    "Oddities",
    "Predicate",
    "Program",
    "SchemaFields",
    "SurveySchemas",
    "Verdicts",
    "all_names",
    "asked_fields",
    "column_arguments",
    "compile_filter",
    "compile_python",
    "compile_sql",
    "evaluate",
    "evaluate_all",
    "fault_text",
    "fields_read",
    "imported_packages",
    "instrumented_copy",
    "matches_called",
    "mentioned_names",
    "missing_names",
    "objections",
    "parsed",
    "partial_names",
    "rank_of",
    "schema_fields",
    "schema_names",
    "sets_attributes",
    "sql_conditions",
    "unknown_names",
    "without_surrogates",
]

__getattr__ = on_demand(
    __name__,
    dict.fromkeys(("Condition", "Judgement", "Oddities", "Verdicts", "evaluate", "evaluate_all"), "vector"),
)
