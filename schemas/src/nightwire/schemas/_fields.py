"""A schema's fields as a table for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table


def field_table(schema: Mapping[str, Any]) -> Table:
    """Return a table of all fields of a schema: dotted path, type, unit, meaning."""
    table = Table(title=f"{schema.get('name', schema.get('type'))}: {schema.get('doc', '')}")
    table.add_column("field", overflow="fold")
    for title in ("type", "unit", "meaning"):
        table.add_column(title)
    for path, kind, field in fields(schema):
        table.add_row(path, kind, str(field.get("unit", "")), str(field.get("doc", "")))
    return table


def fields(schema: Any, path: str = "") -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield dotted path, type in words, and definition of each field, records' inner fields after them.

    A record that is only named again (a second use) is not opened again.
    """
    for branch in schema if isinstance(schema, list) else [schema]:
        if not isinstance(branch, Mapping):
            continue
        if branch.get("type") == "record":
            for field in branch["fields"]:
                here = f"{path}.{field['name']}" if path else field["name"]
                yield here, type_words(field["type"]), field
                yield from fields(field["type"], here)
        for part in ("items", "values"):
            if part in branch:
                yield from fields(branch[part], path)


def type_words(kind: Any) -> str:
    """Return an Avro type in words: ``long or null``, ``array of PartitionRange``."""
    if isinstance(kind, list):
        words = [type_words(branch) for branch in kind if branch != "null"]
        return " or ".join([*words, "null"] if "null" in kind else words)
    if not isinstance(kind, Mapping):
        return str(kind)
    if kind["type"] in ("array", "map"):
        return f"{kind['type']} of {type_words(kind.get('items', kind.get('values')))}"
    return str(kind.get("logicalType", kind.get("name", kind["type"])))
