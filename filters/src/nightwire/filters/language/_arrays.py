"""Lists of values of each alert as NumPy's arrays, and whether one can be made at all."""

import numpy as np

from nightwire.filters.language._points import Extent, of_first
from nightwire.filters.language._values import SAME_AS_NUMPY, UNSURE, Lane, Rows, Value


def sound(extent: Extent, item: Value) -> Value:
    """Return nothing; the fault of the first point that has one."""
    fault = extent.faulty(item)
    if fault is None:
        return Value((Lane("none", None, None),))
    codes = of_first(extent, fault)
    return Value((Lane("none", None, codes == 0),), codes)


def array(extent: Extent, item: Value) -> Value:
    """Return the values as an array has them: all of a list whole numbers, or all floats."""
    kinds = {lane.kind for lane in item.lanes}
    if len(kinds) == 1 and (item.lanes[0].kind in SAME_AS_NUMPY or item.lanes[0].kind in ("str", "npfloat")):
        lane = item.lanes[0]
        values = lane.values if isinstance(lane.values, np.ndarray) else np.full(len(extent), lane.values)
        return Value((Lane(SAME_AS_NUMPY.get(lane.kind, lane.kind), values, lane.where),), item.fault)
    return _mixed(extent, item)


def _mixed(extent: Extent, item: Value) -> Value:
    """Return an array's values of lists of whole numbers and floats together; others are unsure."""
    rows = Rows(len(extent))
    values = np.zeros(len(extent))
    numbers = np.zeros(len(extent), bool)
    for lane in item.lanes:
        if lane.kind in ("float", "npfloat", "int", "npint"):
            here = np.ones(len(extent), bool) if lane.where is None else lane.where
            values = np.where(here, lane.values, values)
            numbers |= here
    whole = np.ones(len(extent.lengths), bool)
    floats = np.zeros(len(extent.lengths), bool)
    whole[extent.owners[~numbers]] = False
    for lane in item.lanes:
        if lane.kind in ("float", "npfloat"):
            floats[extent.owners if lane.where is None else extent.owners[lane.where]] = True
    sure = (whole & floats)[extent.owners] & numbers
    rows.lane("npfloat", values, sure)
    rows.fault(np.where(sure, 0, UNSURE))
    return rows.value(item.fault)
