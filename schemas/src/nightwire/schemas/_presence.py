"""Whether a record, or an array of records, is there: told by the columns of its fields."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nightwire.schemas._column import Column
from nightwire.schemas._types import Types, field_at, has_field, kind

MARK = "?"
"""Ends the name that asks for it: ``diaObject?``."""


def presence(columns: Sequence[Column]) -> Column:
    """Return where something is that has these *columns*: bool, never null.

    Where all of them are arrays, it is taken for an array itself: True for each item, *absent* where that is
    null.
    """
    arrays = [one for one in columns if one.offsets is not None]
    if len(arrays) == len(columns):
        first = arrays[0]
        count = len(first.values)
        return Column(np.ones(count, bool), np.zeros(count, bool), first.offsets, first.absent)
    there = np.logical_or.reduce([~one.null if one.absent is None else ~one.absent for one in columns])
    return Column(there, np.zeros(len(there), bool))


def witness(path: str, types: Types) -> list[str]:
    """Return the field that tells best whether the record at *path* is there; none where the schema has none.

    The first that is never null, else the first.
    """
    if not has_field(types, path):
        return []
    leaves = _leaves(field_at(types, path.split("."), path), types)
    never = [name for name, nullable in leaves if not nullable]
    chosen = [*never, *(name for name, _ in leaves)]
    return [f"{path}.{chosen[0]}"] if chosen else [path]


def _leaves(schema: Any, types: Types) -> list[tuple[str, bool]]:
    """Return the names of a record's plain fields, and whether each may be null."""
    for branch in types.branches(schema):
        if kind(branch) == "array":
            return _leaves(branch["items"], types)
        if kind(branch) == "record":
            found = [(field["name"], types.branches(field["type"])) for field in branch["fields"]]
            return [(name, "null" in kinds) for name, kinds in found if not any(map(_deep, kinds))]
    return []


def _deep(branch: Any) -> bool:
    return kind(branch) in ("record", "array", "map")
