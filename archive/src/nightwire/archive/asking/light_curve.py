"""One object's measurements, of all its alerts and of their histories, each once.  Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

ATTRIBUTES = ("mjd_tai", "band", "flux", "flux_error", "ra", "dec")
SAME = 1e-6
"""Times that differ by less are of the same exposure. [d]"""

Curve = Mapping[str, Any]
"""Arrays of `ATTRIBUTES`, shape (n,)."""


def merged(curves: Iterable[Curve]) -> Any:
    """Return all points of *curves* as a table in order of time.

    Of several points of one band at one time the last curve's counts: what a survey measures again
    is better known.  One without a time is no point.
    """
    points: dict[tuple[int, str], tuple[Any, ...]] = {}
    for curve in curves:
        for point in zip(*(np.asarray(curve[name]).tolist() for name in ATTRIBUTES), strict=True):
            if math.isfinite(point[0]):
                points[round(point[0] / SAME), str(point[1])] = point
    ordered = [points[key] for key in sorted(points)]
    columns = list(zip(*ordered, strict=True)) or [()] * len(ATTRIBUTES)
    kinds = [pa.string() if name == "band" else pa.float64() for name in ATTRIBUTES]
    arrays = [pa.array(list(one), kind, from_pandas=True) for one, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, list(ATTRIBUTES))
