"""One column of alerts as NumPy arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import CodeType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, Any]


Making = TypeVar("Making", bound=Callable[..., Any])

COLUMN_MAKERS: set[CodeType] = set()
"""Code of the functions that work for all alerts of a table, once, when the first of them asks."""


def makes_columns(function: Making) -> Making:
    """Mark a *function* that works for all alerts: its time is not charged to one of them.

    The sandbox, which times each alert by itself, looks for the mark in the frames that run.
    """
    COLUMN_MAKERS.add(function.__code__)
    return function


@dataclass(frozen=True, eq=False)
class Column:
    """A value, or an array of them, for each of n alerts.

    Attributes:
        values: Scalars: shape (n,); arrays: all items, one alert's after the other's.  float64,
            int64, bool or object (text, bytes; None where there is nothing).
        null: True where there is no value; of the shape of *values*.
        offsets: Arrays: int64, shape (n + 1,): alert i has ``values[offsets[i]:offsets[i + 1]]``.
            None for scalars.
        absent: Arrays: shape (n,), True where the array itself is null.  None for scalars.
    """

    values: Array
    null: Array
    offsets: Array | None = None
    absent: Array | None = None

    @cached_property
    @makes_columns
    def items(self) -> list[Any]:
        """*values* as Python's own, None where *null*."""
        found = self.values.tolist()
        for at in np.flatnonzero(self.null).tolist():
            found[at] = None
        return found  # type: ignore[no-any-return]

    def cut(self, row: int) -> Array:
        """Return the items of one array, null or not: a view."""
        span = self._spans[row]
        return self.values[span.start : span.stop]

    def span(self, row: int) -> range | None:
        """Return where the items of one array lie; None where it is null."""
        return None if self.absent is not None and self.absent[row] else self._spans[row]

    def row(self, row: int) -> list[Any] | None:
        """Return the items of one array as Python's own; None where it is null."""
        span = self.span(row)
        return None if span is None else self.items[span.start : span.stop]

    @cached_property
    @makes_columns
    def _spans(self) -> list[range]:
        offsets = [] if self.offsets is None else self.offsets.tolist()
        return [range(*pair) for pair in pairwise(offsets)]


def column(array: Any) -> Column:
    """Return an Arrow array as a column.  Lists inside of lists stay Python's lists."""
    if not _is_list(array.type):
        return _flat(array)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    items = _flat(array.flatten())
    return Column(items.values, items.null, offsets, _nulls(array))


def depth(kind: Any) -> int:
    """Return how many lists lie around the values of an Arrow type."""
    return 1 + depth(kind.value_type) if _is_list(kind) else 0


def nulls(count: int) -> Column:
    """Return a column of nothing."""
    return Column(np.full(count, None, object), np.ones(count, bool))


def numbers(values: Array) -> Column:
    """Return a column of numbers, null where they are NaN."""
    return Column(values, np.isnan(values))


def is_none(values: Array) -> Array:
    """Return where an array of objects has None."""
    nothing: Any = None
    found: Array = np.equal(values, nothing).astype(bool)
    return found


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _flat(array: Any) -> Column:
    kind, null = array.type, _nulls(array)
    if pa.types.is_floating(kind):
        return Column(array.to_numpy(zero_copy_only=False).astype(np.float64, copy=False), null)
    if pa.types.is_integer(kind):
        return Column(_filled(array, 0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False), null)
    if pa.types.is_boolean(kind):
        return Column(_filled(array, False).to_numpy(zero_copy_only=False), null)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return Column(_objects(array), null)
    return Column(np.fromiter(array.to_pylist(), object, len(array)), null)


def _objects(array: Any) -> Array:
    """Return texts, or bytes, as objects, equal ones as one object."""
    encoded = array.dictionary_encode()
    known = np.append(encoded.dictionary.to_numpy(zero_copy_only=False).astype(object), [None])
    places: Array = _filled(encoded.indices, len(known) - 1).to_numpy(zero_copy_only=False)
    return known[places]


def _filled(array: Any, value: Any) -> Any:
    return pc.fill_null(array, value) if array.null_count else array


def _nulls(array: Any) -> Array:
    if not array.null_count:
        return np.zeros(len(array), bool)
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
