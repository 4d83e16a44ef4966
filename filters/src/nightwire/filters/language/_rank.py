"""What an alert that passes ranks by."""

import math
from typing import Any


def rank_of(result: Any) -> float:
    """Return the number that a filter's *result* ranks by; NaN where it is none.

    A truth value, NumPy's too, says that the alert passes, and no more.
    """
    if isinstance(result, bool) or type(result).__name__.startswith("bool"):
        return math.nan
    try:
        return float(result)
    except (TypeError, ValueError, OverflowError):
        return math.nan
