"""The types of an Avro schema that fastavro has parsed: full names, no namespaces left to apply."""

from collections.abc import Mapping, Sequence
from typing import Any

from nightwire.schemas._errors import SchemaError

NAMED = frozenset({"record", "error", "enum", "fixed"})


class Types:
    """The named types of one schema, so that a name can be followed to what it stands for."""

    def __init__(self, parsed: Any) -> None:
        self.root = parsed
        self._named: dict[str, Any] = {}
        self._collect(parsed)

    def definition(self, schema: Any) -> Any:
        """Return *schema*, or where it is a name, what it names."""
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def branches(self, schema: Any) -> list[Any]:
        """Return the definitions of a union's branches; for what is no union, of itself alone."""
        return [self.definition(one) for one in (schema if isinstance(schema, list) else [schema])]

    def _collect(self, schema: Any) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch)
        elif isinstance(schema, dict):
            if schema.get("type") in NAMED:
                self._named[schema["name"]] = schema
            for field in schema.get("fields", ()):
                self._collect(field["type"])
            for part in ("items", "values"):
                self._collect(schema.get(part))


def kind(definition: Any) -> str:
    """Return the type of a definition: ``union``, ``record``, ``array``, ``long``, …"""
    if isinstance(definition, list):
        return "union"
    found = str(definition["type"] if isinstance(definition, Mapping) else definition)
    return "record" if found == "error" else found


def type_name(definition: Any) -> str:
    """Return a definition's name where it has one, else its type."""
    named = isinstance(definition, Mapping) and "name" in definition
    return str(definition["name"]) if named else kind(definition)


def short(name: str) -> str:
    """Return a name without its namespace, by which Avro matches types of two schemas."""
    return name.rsplit(".", 1)[-1]


def logical_name(definition: Any) -> str | None:
    """Return ``long-timestamp-micros`` and the like; None for a plain type or a logical type cut short."""
    logical = definition.get("logicalType") if isinstance(definition, Mapping) else None
    if logical is None or (logical == "decimal" and not isinstance(definition.get("precision"), int)):
        return None
    return f"{kind(definition)}-{logical}"


def field_at(types: Types, steps: Sequence[str], path: str, schema: Any = None) -> Any:
    """Return the type of the field that *steps* lead to, through records, arrays and nulls.

    Args:
        types: Of the schema.
        steps: Names of fields.
        path: The whole path, for messages.
        schema: Where to begin, if not at the schema's root.

    Raises:
        SchemaError: There is no such field; names those there are.
    """
    schema = types.root if schema is None else schema
    for step in steps:
        schema = _field(types, schema, step, path)["type"]
    return schema


def has_field(types: Types, path: str) -> bool:
    """Whether there is a field at a dotted path."""
    try:
        field_at(types, path.split("."), path)
    except SchemaError:
        return False
    return True


def _field(types: Types, schema: Any, step: str, path: str) -> Mapping[str, Any]:
    there: list[str] = []
    for branch in types.branches(schema):
        if kind(branch) == "array":
            return _field(types, branch["items"], step, path)
        if kind(branch) == "map":
            raise SchemaError(f"field {path}: {step!r} lies inside a map; ask for the whole map")
        for field in branch["fields"] if kind(branch) == "record" else ():
            if field["name"] == step:
                return field  # type: ignore[no-any-return]
            there.append(field["name"])
    has = f"it has {', '.join(there)}" if there else "there is no record there"
    raise SchemaError(f"unknown field {path}: no {step!r}; {has}")
