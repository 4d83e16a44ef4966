"""Columns of decoded alerts: dotted paths into an Avro schema, and the Arrow type that each leads to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nightwire.schemas._errors import DecodeError, SchemaError

PRIMITIVES: Mapping[str, Callable[[], Any]] = {
    "null": pa.null,
    "boolean": pa.bool_,
    "int": pa.int32,
    "long": pa.int64,
    "float": pa.float32,
    "double": pa.float64,
    "bytes": pa.binary,
    "string": pa.string,
}
LOGICAL: Mapping[str, Callable[[], Any]] = {
    "timestamp-millis": lambda: pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": lambda: pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": lambda: pa.timestamp("ms"),
    "local-timestamp-micros": lambda: pa.timestamp("us"),
    "date": pa.date32,
    "time-millis": lambda: pa.time32("ms"),
    "time-micros": lambda: pa.time64("us"),
    "uuid": pa.string,
}


@dataclass(frozen=True)
class ColumnPath:
    """One column: where its values lie in an alert, and what they are."""

    name: str
    steps: tuple[str, ...]
    type: Any

    def value(self, alert: Any) -> Any:
        """Return this column's value in *alert*: None where a record on the way is null."""
        return _walk(alert, self.steps)


def column_path(parsed: Any, field: str) -> ColumnPath:
    """Find the dotted path *field* in a parsed schema.

    Raises:
        SchemaError: There is no such field, or it is of a type that has no column.
    """
    names = _names(parsed)
    steps = tuple(field.split("."))
    try:
        return ColumnPath(field, steps, _type_at(parsed, steps, field, names))
    except RecursionError as error:
        raise SchemaError(f"field {field} contains itself: ask for its parts") from error


def record_batch(paths: Sequence[ColumnPath], alerts: Iterable[Mapping[str, Any]]) -> Any:
    """Return one row per alert, one column per path; all columns may hold nulls.

    Raises:
        DecodeError: A decoded value does not fit its column's type; names the column.
    """
    values: list[list[Any]] = [[] for _ in paths]
    rows = 0
    for alert in alerts:
        rows += 1
        for column, path in zip(values, paths, strict=True):
            column.append(path.value(alert))
    arrays = [_array(path, column) for path, column in zip(paths, values, strict=True)]
    schema = pa.schema([pa.field(path.name, path.type) for path in paths])
    if not paths:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(path: ColumnPath, values: list[Any]) -> Any:
    try:
        return pa.array(values, type=path.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DecodeError(f"field {path.name}: {error}") from error


def _walk(value: Any, steps: tuple[str, ...]) -> Any:
    for at, step in enumerate(steps):
        if isinstance(value, list):
            return [_walk(item, steps[at:]) for item in value]
        if value is None:
            return None
        value = value.get(step)
    return value


def _type_at(schema: Any, steps: tuple[str, ...], field: str, names: Mapping[str, Any]) -> Any:
    branches = [branch for branch in _branches(schema, names) if branch != "null"]
    if not steps:
        return arrow_type(schema, names)
    arrays = [branch for branch in branches if _kind(branch) == "array"]
    if arrays:
        return pa.list_(_type_at(arrays[0]["items"], steps, field, names))
    for branch in branches:
        if _kind(branch) == "map":
            raise SchemaError(f"field {field}: {steps[0]!r} lies inside a map; ask for the whole map")
        for candidate in branch.get("fields", ()) if isinstance(branch, dict) else ():
            if candidate["name"] == steps[0]:
                return _type_at(candidate["type"], steps[1:], field, names)
    there = [f["name"] for branch in branches if isinstance(branch, dict) for f in branch.get("fields", ())]
    has = f"it has {', '.join(there)}" if there else "there is no record there"
    raise SchemaError(f"unknown field {field}: no {steps[0]!r}; {has}")


def arrow_type(schema: Any, names: Mapping[str, Any]) -> Any:
    """Return the Arrow type of an Avro type.  Unions are a type or null; others have no column.

    Raises:
        SchemaError: A union of several types.
    """
    branches = [branch for branch in _branches(schema, names) if branch != "null"]
    if len(branches) > 1:
        raise SchemaError(f"a union of {len(branches)} types has no column: {[_kind(b) for b in branches]}")
    one = branches[0] if branches else "null"
    kind = _kind(one)
    if isinstance(one, dict) and one.get("logicalType") in LOGICAL:
        return LOGICAL[one["logicalType"]]()
    if isinstance(one, dict) and one.get("logicalType") == "decimal":
        return pa.decimal128(one["precision"], one.get("scale", 0))
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]()
    return _compound(one, kind, names)


def _compound(one: Any, kind: str, names: Mapping[str, Any]) -> Any:
    if kind == "array":
        return pa.list_(arrow_type(one["items"], names))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(one["values"], names))
    if kind in ("record", "error"):
        return pa.struct([pa.field(f["name"], arrow_type(f["type"], names)) for f in one["fields"]])
    return pa.binary(one["size"]) if kind == "fixed" else pa.string()  # else: enum


def _branches(schema: Any, names: Mapping[str, Any]) -> list[Any]:
    branches = schema if isinstance(schema, list) else [schema]
    return [names.get(b, b) if isinstance(b, str) else b for b in branches]


def _kind(branch: Any) -> str:
    return str(branch["type"] if isinstance(branch, dict) else branch)


def _names(schema: Any) -> dict[str, Any]:
    """Collect the named types of a parsed schema (fastavro makes their names full)."""
    found: dict[str, Any] = {}
    _collect(schema, found)
    return found


def _collect(schema: Any, found: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, found)
    elif isinstance(schema, dict):
        if "name" in schema and schema.get("type") in ("record", "error", "enum", "fixed"):
            found[schema["name"]] = schema
        for field in schema.get("fields", ()):
            _collect(field["type"], found)
        for part in ("items", "values", "type"):
            if isinstance(schema.get(part), (dict, list)):
                _collect(schema[part], found)
