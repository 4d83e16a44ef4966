"""Least and greatest of a column in each part of a table: in its files, or a file's groups of rows.

Arrow's functions would take longer for these few numbers than all else that finds an alert.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


class Bounds:
    """Tells which parts can have a value.

    Args:
        least: Of each part, null where nobody knows; an Arrow array, shape ``(n,)``.
        greatest: Likewise.
    """

    def __init__(self, least: Any, greatest: Any) -> None:
        known = pc.and_(pc.is_valid(least), pc.is_valid(greatest))
        self._unknown: NDArray[np.bool_] = ~_plain(known)
        self._least, self._greatest = _plain(least), _plain(greatest)

    def within(self, low: Any, high: Any) -> NDArray[np.bool_]:
        """Return which parts can have a value from *low* to *high*, both within; shape ``(n,)``.

        Args:
            low: A value, or Arrow's scalar of it; None for no bound.
            high: Likewise.
        """
        low, high = (getattr(one, "value", one) for one in (low, high))  # of a time, its number
        may: NDArray[np.bool_] = np.ones(len(self._unknown), np.bool_)
        if low is not None:
            may &= ~(self._greatest < low).astype(np.bool_)  # NaN says nothing
        if high is not None:
            may &= ~(self._least > high).astype(np.bool_)
        return may | self._unknown


def _plain(values: Any) -> NDArray[Any]:
    """Return *values* as NumPy has them: times as their number, 0 or ``"0"`` for null."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0).cast(values.type))
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found
