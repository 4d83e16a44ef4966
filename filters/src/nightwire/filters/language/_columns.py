"""Columns of a table as values."""

import numpy as np

from nightwire.filters.language._values import SAME_AS_NUMPY, Array, Lane, Rows, Value
from nightwire.schemas import Column

SHORT = 16
"""Longest text that is kept beside others of its length, not apart. [character]"""


def of_column(column: Column) -> Value:
    """Return the values of a column of scalars."""
    return of_array(column.values, column.null)


def of_array(values: Array, null: Array, *, numpy: bool = False) -> Value:
    """Return *values*, nothing where *null*; of NumPy's types if *numpy*."""
    kind = {"f": "float", "i": "int", "b": "bool"}.get(values.dtype.kind)
    if kind is None:
        return _of_objects(values, null)
    kind = SAME_AS_NUMPY[kind] if numpy else kind
    if not null.any():
        return Value((Lane(kind, values, None),))
    return Value((Lane(kind, values, ~null), Lane("none", None, null)))


def _of_objects(values: Array, null: Array) -> Value:
    there = values if not null.any() else values[~null]
    if set(map(type, there.tolist())) <= {str}:
        texts = compact(there)
        if len(there) == len(values):
            return Value((Lane("str", texts, None),))
        filled = np.zeros(len(values), texts.dtype)
        filled[~null] = texts
        return Value((Lane("str", filled, ~null), Lane("none", None, null)))
    rows = np.arange(len(values))
    found = Rows(len(values))
    found.none(null)
    found.scatter(rows[~null], there.tolist())
    return found.value()


def compact(texts: Array) -> Array:
    """Return short texts side by side, where they are compared much faster; long ones as they are."""
    lengths = [*map(len, texts.tolist())]
    if max(lengths, default=0) > SHORT:
        return texts
    found = texts.astype(f"<U{max(lengths, default=1) or 1}")
    return (
        found if (np.char.str_len(found) == lengths).all() else texts
    )  # NumPy drops null characters at an end
