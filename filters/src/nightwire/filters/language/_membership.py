"""Whether values of a whole column are among several constants, where that is exact."""

from typing import Any

import numpy as np

from nightwire.filters.language._values import EXACT, Array

Answer = tuple[str, Array, Array | None] | None


def one_of(kinds: tuple[str, ...], values: Any) -> Answer:
    """Return Python's ``in``, of texts and whole numbers."""
    if kinds[1] != "tuple" or kinds[0] not in ("str", "int") or not isinstance(values[0], np.ndarray):
        return None
    return "bool", _among(*values), None


def is_in(kinds: tuple[str, ...], values: Any) -> Answer:
    """Return ``np.isin``, of texts among texts and of numbers among numbers."""
    if kinds[1] != "tuple" or not isinstance(values[0], np.ndarray):
        return None
    types = {type(one) for one in values[1]}
    if kinds[0] == "str" and types == {str}:
        return "npbool", _among(*values), None
    if kinds[0] in ("npfloat", "npint") and types <= {int, float} and max(map(abs, values[1])) <= EXACT:
        return "npbool", np.isin(values[0], values[1]), np.abs(values[0].astype(float)) > EXACT
    return None


def _among(values: Array, choices: Any) -> Array:
    return np.fromiter(map(frozenset(choices).__contains__, values.tolist()), bool, len(values))
