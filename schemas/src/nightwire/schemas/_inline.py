"""Schemas that name others, written out as one."""

from collections.abc import Mapping
from typing import Any


def inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Return *schema* with each of *parts* (schemas by full name) written out where it is named first."""
    return _inlined(schema, "", dict(parts))


def _inlined(schema: Any, space: str, rest: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(branch, space, rest) for branch in schema]
    if isinstance(schema, str):
        name = schema if "." in schema else f"{space}.{schema}".lstrip(".")
        name = name if name in rest else schema
        return _inlined(rest.pop(name), space, rest) if name in rest else schema
    space = schema.get("name", "").rpartition(".")[0] or schema.get("namespace", space)
    made = dict(schema)
    for key in ("items", "values"):
        if key in made:
            made[key] = _inlined(made[key], space, rest)
    if "fields" in made:
        made["fields"] = [{**field, "type": _inlined(field["type"], space, rest)} for field in made["fields"]]
    return made
