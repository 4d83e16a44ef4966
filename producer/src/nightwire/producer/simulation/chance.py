"""Chance without a state: numbers that depend on a seed and their purpose alone.

A detection that is drawn anew when it has become history must come out as it was when it was news.
So every number is a hash of the seed and of keys (object, visit, quantity), not the next of a
sequence; nothing has to be remembered between visits, and histories of any length cost no memory.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
Key = npt.NDArray[np.integer[Any]] | int

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WORD = (1 << 64) - 1


def hashed(seed: int, *keys: Key) -> U64:
    """Return one 64-bit number for each combination of *keys*, which are broadcast (splitmix64)."""
    state: U64 = np.atleast_1d(np.uint64(seed & _WORD))
    with np.errstate(over="ignore"):
        for key in keys:
            number = np.uint64(key & _WORD) if isinstance(key, int) else key.astype(np.uint64)
            state = _mix((state ^ number) + _GOLDEN)
    return state


def _mix(state: U64) -> U64:
    state = (state ^ (state >> np.uint64(30))) * _M1
    state = (state ^ (state >> np.uint64(27))) * _M2
    return state ^ (state >> np.uint64(31))


def uniform(seed: int, *keys: Key) -> F64:
    """Return numbers in [0, 1), one for each combination of *keys*."""
    mantissa = hashed(seed, *keys) >> np.uint64(11)
    return np.asarray(mantissa, dtype=np.float64) * 2.0**-53


def normal(seed: int, *keys: Key) -> F64:
    """Return numbers of the standard normal distribution, one for each combination of *keys*."""
    radius = np.sqrt(-2.0 * np.log1p(-uniform(seed, *keys, 1)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform(seed, *keys, 2)))
