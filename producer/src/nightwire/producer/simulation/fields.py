"""The fields of simulated alerts, from their schema.

Records are made with their fields in the schema's order: the codec is twice as fast with these.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import repeat
from typing import Any

from nightwire.schemas import sim_alert_schema


@cache
def field_types(record: str) -> dict[str, Any]:
    """Return the Avro type of each field of *record*, such as ``diaSource``."""
    found = next(found for found in _records(sim_alert_schema()) if found["name"] == record)
    return {field["name"]: field["type"] for field in found["fields"]}


def in_order(record: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return *values*, one for each field of *record*, in the schema's order."""
    return {name: values[name] for name in field_types(record)}


def rows(record: str, columns: Mapping[str, list[Any]], usual: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a *record* for each row of *columns*; other fields have their *usual* value."""
    names = list(field_types(record))
    table = zip(*(columns[name] if name in columns else repeat(usual[name]) for name in names), strict=False)
    return [dict(zip(names, row, strict=True)) for row in table]


def _records(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, list):
        for branch in schema:
            yield from _records(branch)
    elif isinstance(schema, dict) and schema["type"] == "record":
        yield schema
        for field in schema["fields"]:
            yield from _records(field["type"])
    elif isinstance(schema, dict) and schema["type"] == "array":
        yield from _records(schema["items"])
