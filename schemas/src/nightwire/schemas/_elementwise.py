"""Functions of `math` for one number, and for arrays of them with the same values to the bit.

NumPy's own differ from the C library's in the last bit on some processors.  What is judged alert by alert
and what is judged in columns must be the same number.
"""

import math
from collections.abc import Callable
from typing import Any

Numbers = Any
"""A float, or an array of them, shape (n,)."""


def _over(function: Callable[..., float]) -> Callable[..., Numbers]:
    def apply(*values: Numbers) -> Numbers:
        if isinstance(values[0], float):
            return function(*values)
        import numpy as np  # takes 0.1 s: not before there are arrays

        return np.fromiter(map(function, *(one.tolist() for one in values)), float, len(values[0]))

    return apply


def _ten_to(exponent: float) -> float:
    try:
        return math.pow(10.0, exponent)
    except OverflowError:
        return math.inf


sin, cos, atan2 = _over(math.sin), _over(math.cos), _over(math.atan2)
sqrt, log10 = _over(math.sqrt), _over(math.log10)
ten_to = _over(_ten_to)
"""Ten to some power, infinite where it is too large for a float."""


def truncated(value: Numbers) -> Any:
    """Return the integer part of *value*."""
    return int(value) if isinstance(value, float) else value.astype("int64")


def where(condition: Any, one: Any, other: Any) -> Any:
    """Return *one* where *condition* holds, else *other*."""
    if isinstance(condition, bool):
        return one if condition else other
    import numpy as np

    return np.where(condition, one, other)
