"""From the time scale that a survey writes to TAI.  Never the other way: TAI is not written as UTC."""

from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SECONDS_PER_DAY = 86_400.0


def mjd_tai(mjd: float, scale: str) -> float:
    """Return the modified Julian date *mjd* of *scale* (``tai`` or ``utc``) on the TAI scale. [d]

    A UTC day that ends in a leap second is taken as 86,401 s long, as astropy and ERFA do.
    """
    if scale == "tai":
        return mjd
    days, offsets = _leap_seconds()
    at = bisect_right(days, mjd) - 1
    if at < 0:
        raise ValueError(f"MJD {mjd} (UTC) is before 1972, when leap seconds began")
    day = int(mjd)
    if at + 1 < len(days) and day == days[at + 1] - 1:
        stretch = offsets[at + 1] - offsets[at]
        return mjd + (offsets[at] + (mjd - day) * stretch) / SECONDS_PER_DAY
    return mjd + offsets[at] / SECONDS_PER_DAY


def mjds_tai(mjd: "np.ndarray[Any, Any]", scale: str) -> "np.ndarray[Any, Any]":
    """Return what `mjd_tai` does, for an array of shape (n,); NaN before 1972. [d]"""
    if scale == "tai":
        return mjd
    import numpy as np

    starts, offsets = (np.array(one, float) for one in _leap_seconds())
    at = np.searchsorted(starts, mjd, side="right") - 1
    day, after = np.floor(mjd), np.minimum(at + 1, len(starts) - 1)
    stretch = np.where((after > at) & (day == starts[after] - 1), offsets[after] - offsets[at], 0.0)
    tai = mjd + (offsets[at] + (mjd - day) * stretch) / SECONDS_PER_DAY
    return np.where(at < 0, np.nan, tai)


@cache
def _leap_seconds() -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the days (MJD) on which TAI - UTC changed, and what it was from then on. [s]

    The table is that of ERFA, which astropy brings: no list of ours to keep up to date.
    """
    import erfa  # type: ignore[import-untyped]  # takes 0.3 s, of which most is NumPy

    table = erfa.leap_seconds.get()
    table = table[table["year"] >= 1972]
    _, days = erfa.cal2jd(table["year"], table["month"], 1)
    return tuple(int(day) for day in days), tuple(float(offset) for offset in table["tai_utc"])
