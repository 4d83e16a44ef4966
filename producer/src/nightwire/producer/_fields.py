"""The fields of simulated alerts, from their schema."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from nightwire.schemas import sim_alert_schema


@cache
def field_types(record: str) -> dict[str, Any]:
    """Return the Avro type of each field of *record*, such as ``diaSource``."""
    found = next(found for found in _records(sim_alert_schema()) if found["name"] == record)
    return {field["name"]: field["type"] for field in found["fields"]}


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
