"""Reductions along the rows of a matrix, whose rows are alerts and whose columns are their points.

Each row comes out to the bit as Python, or NumPy, makes it of that row alone; rows of which this cannot be
said are named.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nightwire.filters.language._values import SAME_AS_NUMPY, TYPES, Array

Along = Callable[[float, Array], tuple[Any, Array | None]]
"""Of a further argument and a matrix: a value for each row, and the rows that Python has to do itself."""

LARGEST = 2.0**62
"""Sums of whole numbers beyond may not fit 64 bits."""

QUANTILES = frozenset({"percentile", "quantile", "nanpercentile"})
WITH_DDOF = frozenset({"std", "var", "nanstd", "nanvar"})

NUMPY = (
    "sum", "mean", "max", "min", "any", "all", "prod", "nansum", "nanmean", "nanmax", "nanmin", "argmax",
    "argmin", "count_nonzero", "ptp", "median", "std", "var", "nanstd", "nanvar", *sorted(QUANTILES),
)  # fmt: skip

COUNTED = TYPES[type(np.count_nonzero(np.zeros(1)))]
"""What counting gives: a whole number of Python's, or, in later versions, of NumPy's."""


def of_numpy(name: str, extra: float, values: Array, **axis: int) -> Any:
    """Return what NumPy's function *name* makes of *values*."""
    function = getattr(np, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in WITH_DDOF:
            return function(values, ddof=extra, **axis)
        return function(values, extra, **axis) if name in QUANTILES else function(values, **axis)


def _along(name: str) -> Along:
    def apply(extra: float, matrix: Array) -> tuple[Any, Array | None]:
        return of_numpy(name, extra, matrix, axis=1), None

    return apply


def _sum(extra: float, matrix: Array) -> tuple[Any, Array | None]:
    return np.cumsum(matrix, axis=1)[:, -1] + 0.0, None


def _whole_sum(extra: float, matrix: Array) -> tuple[Any, Array | None]:
    return matrix.sum(axis=1, dtype=np.int64), too_large(matrix)


def too_large(matrix: Array) -> Array | None:
    """Return the rows of a matrix of whole numbers whose sum may not fit 64 bits; None where all do."""
    if matrix.dtype == bool:
        return None
    return np.asarray(np.abs(matrix.astype(float)).sum(axis=1) >= LARGEST)


def _extreme(function: Any) -> Along:
    def apply(extra: float, matrix: Array) -> tuple[Any, Array | None]:
        found = function(matrix, axis=1)
        return found, np.isnan(found) | (found == 0)  # which of 0.0 and -0.0 came first?

    return apply


def _whole_extreme(function: Any) -> Along:
    return lambda extra, matrix: (function(matrix, axis=1), None)


OF_FLOATS: Mapping[str, Along] = {
    **{f"np.{name}": _along(name) for name in NUMPY},
    "max": _extreme(np.max),
    "min": _extreme(np.min),
    **(
        {} if sys.version_info >= (3, 12) else {"sum": _sum}
    ),  # since then, Python corrects what rounding loses
}
OF_WHOLE: Mapping[str, Along] = {
    **{f"np.{name}": _along(name) for name in NUMPY},
    "max": _whole_extreme(np.max),
    "min": _whole_extreme(np.min),
    "sum": _whole_sum,
}


def along(name: str, kind: str) -> Along | None:
    """Return what does the reduction *name* of values of a *kind*, if anything does."""
    if kind in ("float", "npfloat"):
        return OF_FLOATS.get(name)
    if kind in ("npint", "npbool") or (kind in ("int", "bool") and not name.startswith("np.")):
        return OF_WHOLE.get(name)
    return None


def kind_of(name: str, kind: str, values: Any) -> str:
    """Return the kind of what *name* made of values of a *kind*."""
    if name == "np.count_nonzero":
        return COUNTED
    if name.startswith("np."):
        return SAME_AS_NUMPY[{"f": "float", "i": "int", "b": "bool"}[np.asarray(values).dtype.kind]]
    return {"bool": "int", "npbool": "npint"}.get(kind, kind) if name == "sum" else kind
