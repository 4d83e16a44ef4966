"""Alerts for tests."""

from typing import Any

EMPTY: dict[str, Any] = {"float": 0.0, "double": 0.0, "string": "", "bytes": b"", "boolean": False}


def empty(schema: Any) -> Any:
    """Return null where *schema* allows it, else its emptiest value."""
    if isinstance(schema, list):
        return None
    if isinstance(schema, str):
        return EMPTY.get(schema, 0)
    if schema["type"] == "record":
        return {field["name"]: empty(field["type"]) for field in schema["fields"]}
    return empty(schema["type"])
