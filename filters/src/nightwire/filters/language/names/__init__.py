"""The names that a filter's source mentions, and the fields that a survey's schemas have."""

from nightwire.filters.language.names.asked_fields import AskedFields, asked_fields
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

__all__ = [
    "AskedFields",
    "SchemaFields",
    "SurveySchemas",
    "all_names",
    "asked_fields",
    "imported_packages",
    "matches_called",
    "mentioned_names",
    "missing_names",
    "partial_names",
    "schema_fields",
    "schema_names",
    "sets_attributes",
    "unknown_names",
]
