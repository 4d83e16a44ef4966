"""Columns of ids: of several fields, the first that holds one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nightwire.schemas._column import Column, nulls


def first_of(columns: Sequence[Column], absent: Sequence[Any], count: int) -> Column:
    """Return for each alert the first value that is neither null nor one of *absent*."""
    columns = [one for one in columns if one.values.dtype != object or not one.null.all()]
    if not columns:
        return nulls(count)
    whole = all(one.values.dtype == np.int64 for one in columns)
    values = np.zeros(count, np.int64) if whole else np.full(count, None, object)
    missing = np.ones(count, bool)
    for one in columns:
        usable = missing & ~one.null
        for value in absent:
            usable &= one.values != value
        values[usable] = one.values[usable]
        missing &= ~usable
    return Column(values, missing)


def visits(ids: Column, divisor: int) -> Column:
    """Return the visits that *ids* stand for."""
    whole = np.where(ids.null, 0, ids.values).astype(np.int64)
    return Column(whole // divisor, ids.null)
