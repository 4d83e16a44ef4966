"""The light curve of an object, merged from its alerts and their histories.  Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

ATTRIBUTES = ("mjd_tai", "band", "flux", "flux_error", "ra", "dec")
TIME_TOLERANCE = 1e-6
"""Difference below which two times are of one exposure. [d]"""

Curve = Mapping[str, Any]
"""Arrays of `ATTRIBUTES`, shape (n,)."""


def merge(curves: Iterable[Curve]) -> Any:
    """Return all points of *curves* as a table in order of time.

    Of several points of one band at one time the last curve's counts: a survey's later measurement
    is the better one.  Points without a time are left out.
    """
    points: dict[tuple[int, str], tuple[Any, ...]] = {}
    for curve in curves:
        for point in zip(*(np.asarray(curve[name]).tolist() for name in ATTRIBUTES), strict=True):
            if math.isfinite(point[0]):
                points[round(point[0] / TIME_TOLERANCE), str(point[1])] = point
    ordered = [points[key] for key in sorted(points)]
    columns = list(zip(*ordered, strict=True)) or [()] * len(ATTRIBUTES)
    kinds = [pa.string() if name == "band" else pa.float64() for name in ATTRIBUTES]
    arrays = [pa.array(list(one), kind, from_pandas=True) for one, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, list(ATTRIBUTES))
