"""Arrow columns of decoded alerts: the type and the values at dotted paths into an Avro schema."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from nightwire.schemas.avro.plans.schema import (
    Types,
    field_at,
    has_field,
    kind,
    logical_name,
    readable_fields,
)
from nightwire.schemas.errors import DecodeError, SchemaError

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


def column_schema(parsed: Any, fields: Sequence[str]) -> Any:
    """Return the Arrow schema of the columns at the dotted paths *fields*; all may hold nulls.

    Raises:
        SchemaError: There is no such field, or it is of a type that has no column.
    """
    types = Types(parsed)
    return pa.schema([pa.field(field, column_type(types, field)) for field in fields])


def column_type(types: Types, field: str) -> Any:
    """Return the Arrow type of the column at the dotted path *field*.

    Raises:
        SchemaError: There is no such field, or it is of a type that has no column.
    """
    try:
        return _type_at(types, types.root, field.split("."), field)
    except RecursionError as error:
        raise SchemaError(f"field {field} contains itself: ask for its parts") from error


def _type_at(types: Types, schema: Any, steps: Sequence[str], field: str) -> Any:
    if not steps:
        return arrow_type(schema, types)
    for branch in types.branches(schema):
        if kind(branch) == "array":
            return pa.list_(_type_at(types, branch["items"], steps, field))
    return _type_at(types, field_at(types, steps[:1], field, schema), steps[1:], field)


def record_batch(paths: Sequence[Sequence[str]], schema: Any, alerts: Sequence[Mapping[str, Any]]) -> Any:
    """Return one row per alert, one column per path.

    Raises:
        DecodeError: A decoded value does not fit its column's type; names the column.
    """
    if not paths:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(alerts), pa.struct([])))
    arrays = [
        _array(field, [_value_at(alert, path) for alert in alerts])
        for field, path in zip(schema, paths, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(field: Any, values: list[Any]) -> Any:
    try:
        return pa.array(values, type=field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DecodeError(f"field {field.name}: {error}") from error


def _value_at(value: Any, steps: Sequence[str]) -> Any:
    for at, step in enumerate(steps):
        if isinstance(value, list):
            return [_value_at(item, steps[at:]) for item in value]
        if value is None:
            return None
        value = value.get(step)
    return value


def arrow_type(schema: Any, types: Types) -> Any:
    """Return the Arrow type of an Avro type.  Unions are a type or null; others have no column.

    Raises:
        SchemaError: A union of several types.
    """
    branches = [branch for branch in types.branches(schema) if branch != "null"]
    if len(branches) > 1:
        raise SchemaError(f"a union of {len(branches)} types has no column: {[kind(b) for b in branches]}")
    one = branches[0] if branches else "null"
    logical = (logical_name(one) or "").partition("-")[2]
    if logical in LOGICAL:
        return LOGICAL[logical]()
    if logical == "decimal" and isinstance(one, dict):
        return pa.decimal128(one["precision"], one.get("scale", 0))
    return PRIMITIVES[kind(one)]() if kind(one) in PRIMITIVES else _compound(one, types)


def _compound(one: Any, types: Types) -> Any:
    match kind(one):
        case "array":
            return pa.list_(arrow_type(one["items"], types))
        case "map":
            return pa.map_(pa.string(), arrow_type(one["values"], types))
        case "record":
            return pa.struct(
                [pa.field(field["name"], arrow_type(field["type"], types)) for field in readable_fields(one)]
            )
    return pa.binary(one["size"]) if kind(one) == "fixed" else pa.string()  # else: enum


def with_null_columns(batch: Any, fields: Sequence[str], types: Types, count: int) -> Any:
    """Return a batch of *fields*: those of *batch*, and nulls for the others.

    Inside of an array there are as many nulls as it has items, where *batch* has another of its
    fields.

    Args:
        batch: Those of *fields* that the schema has.
        fields: Dotted paths.
        types: Of the schema.
        count: Number of rows.
    """
    there = frozenset(batch.schema.names)
    arrays = [batch.column(one) if one in there else _null_column(batch, one, types, count) for one in fields]
    return pa.RecordBatch.from_arrays(arrays, names=list(fields))


def _null_column(batch: Any, field: str, types: Types, count: int) -> Any:
    array = _array_on_the_way(types, field.split("."))
    beside = [name for name in batch.schema.names if array and name.startswith(f"{array}.")]
    if not beside:
        return pa.nulls(count)
    known = batch.column(beside[0])
    return pa.ListArray.from_arrays(known.offsets, pa.nulls(len(known.values)), mask=known.is_null())


def _array_on_the_way(types: Types, steps: Sequence[str]) -> str | None:
    """Return the path of the first array that *steps* lead through; None if there is none."""
    schema = types.root
    for at, step in enumerate(steps[:-1]):
        if not has_field(types, ".".join(steps[: at + 1])):
            return None
        schema = next(
            field["type"]
            for branch in types.branches(schema)
            if kind(branch) == "record"
            for field in readable_fields(branch)
            if field["name"] == step
        )
        if any(kind(branch) == "array" for branch in types.branches(schema)):
            return ".".join(steps[: at + 1])
    return None
