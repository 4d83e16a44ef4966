"""Columns of fields that a schema does not have."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from nightwire.schemas._types import Types, has_field, kind


def with_nulls(batch: Any, fields: Sequence[str], types: Types, count: int) -> Any:
    """Return a batch of *fields*: those of *batch*, and nulls for the others.

    Inside of an array there are as many nulls as it has items, where *batch* has another of its fields.

    Args:
        batch: Those of *fields* that the schema has.
        fields: Dotted paths.
        types: Of the schema.
        count: Number of rows.
    """
    there = frozenset(batch.schema.names)
    arrays = [batch.column(one) if one in there else _nulls(batch, one, types, count) for one in fields]
    return pa.RecordBatch.from_arrays(arrays, names=list(fields))


def _nulls(batch: Any, field: str, types: Types, count: int) -> Any:
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
            for field in branch["fields"]
            if field["name"] == step
        )
        if any(kind(branch) == "array" for branch in types.branches(schema)):
            return ".".join(steps[: at + 1])
    return None
