"""The minimum and maximum of a column in each file of a table, or each row group of a file.

They are compared by NumPy: Arrow's functions would take longer than all else that finds an alert.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


class MinMax:
    """Minimum and maximum statistics of a column in n parts.

    Args:
        minima: Of each part, null where unknown; an Arrow array, shape ``(n,)``.
        maxima: Likewise.
    """

    def __init__(self, minima: Any, maxima: Any) -> None:
        known = pc.and_(pc.is_valid(minima), pc.is_valid(maxima))
        self._unknown: NDArray[np.bool_] = ~_plain(known)
        self._minima, self._maxima = _plain(minima), _plain(maxima)

    def may_contain(self, low: Any, high: Any) -> NDArray[np.bool_]:
        """Return which parts can have a value from *low* to *high*, inclusive; shape ``(n,)``.

        Args:
            low: A value, or an Arrow scalar; None for no bound.
            high: Likewise.
        """
        low, high = (getattr(one, "value", one) for one in (low, high))  # of a time, its number
        may: NDArray[np.bool_] = np.ones(len(self._unknown), np.bool_)
        if low is not None:
            may &= ~(self._maxima < low).astype(np.bool_)  # NaN says nothing
        if high is not None:
            may &= ~(self._minima > high).astype(np.bool_)
        return may | self._unknown


def _plain(values: Any) -> NDArray[Any]:
    """Return *values* as NumPy has them: times as their number, 0 or ``"0"`` for null."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0).cast(values.type))
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found
