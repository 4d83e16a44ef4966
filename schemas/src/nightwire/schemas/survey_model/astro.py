"""Astronomy: galactic coordinates, HEALPix, magnitudes, time scales; of floats or of arrays."""

import math
from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


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


def finite(value: Numbers) -> Numbers:
    """Return *value*, NaN where it is infinite."""
    return where(abs(value) < math.inf, value, math.nan)


ORDER = 12
"""Order of the HEALPix pixels of `AlertView.healpix`: 51.5 arcsec wide."""
MAX_ORDER = 29
"""Highest order whose nested pixels 64 bits can number."""

POLE = 90.0
"""Largest declination. [deg]"""

_DEGREE = math.pi / 180
_GALACTIC = (
    (-0.054875560416215368, -0.873437090234885049, -0.483835015548713227),
    (0.494109427875583674, -0.444829629960011178, 0.746982244497218891),
    (-0.867666149019004701, -0.198076373431201528, 0.455983776175066922),
)
"""From ICRS to galactic coordinates (ESA 1997, SP-1200, vol. 1, 1.5.3; digits of ERFA's icrs2g)."""


def galactic(ra: Numbers, dec: Numbers) -> tuple[Numbers, Numbers]:
    """Return galactic longitude, 0 to 360, and latitude of an ICRS position. [deg]"""
    x = cos(dec * _DEGREE) * cos(ra * _DEGREE)
    y = cos(dec * _DEGREE) * sin(ra * _DEGREE)
    z = sin(dec * _DEGREE)
    u, v, w = (a * x + b * y + c * z for a, b, c in _GALACTIC)
    longitude = atan2(v, u) / _DEGREE
    return longitude + 360.0 * (longitude < 0), atan2(w, sqrt(u * u + v * v)) / _DEGREE


def healpix(ra: Numbers, dec: Numbers, order: int) -> Any:
    """Return the number of the HEALPix pixel that a position [deg] lies in, nested scheme.

    Górski et al. 2005 (ApJ 622, 759), section 4 and their `ang2pix_nest`.

    Raises:
        ValueError: *order* is not from 0 to 29.
    """
    if not 0 <= order <= MAX_ORDER:
        raise ValueError(f"HEALPix has orders 0 to {MAX_ORDER}, not {order}")
    side = 1 << order
    turns = ra % 360.0 / 90.0
    turns = where(turns < 4.0, turns, 0.0)
    z = sin(dec * _DEGREE)
    belt = _belt(turns, z, side)
    cap = _cap(turns, z, cos(dec * _DEGREE), side)
    face, x, y = (where(abs(z) <= 2 / 3, one, other) for one, other in zip(belt, cap, strict=True))
    return face * side * side + _spread(x) + 2 * _spread(y)


def _belt(turns: Numbers, z: Numbers, side: int) -> tuple[Any, Any, Any]:
    """Return base pixel, and x and y in it, of a position in the equatorial belt."""
    rising = truncated(side * (0.5 + turns) - side * (z * 0.75))
    falling = truncated(side * (0.5 + turns) + side * (z * 0.75))
    up, down = rising // side, falling // side
    face = where(up == down, up | 4, where(up < down, up, down + 8))
    return face, falling % side, side - rising % side - 1


def _cap(turns: Numbers, z: Numbers, cosine: Numbers, side: int) -> tuple[Any, Any, Any]:
    """Return the same in the polar caps.

    The paper's sqrt(3 (1 - |z|)) is written by the cosine of the declination, which keeps its
    digits at the poles.
    """
    quarter = truncated(turns)
    quarter = where(quarter < 4, quarter, 3)
    along = turns - quarter
    width = side * cosine * sqrt(3 / (1 + abs(z)))
    rising = truncated(along * width)
    falling = truncated((1 - along) * width)
    rising = where(rising < side, rising, side - 1)
    falling = where(falling < side, falling, side - 1)
    north = z >= 0
    face = where(north, quarter, quarter + 8)
    return face, where(north, side - falling - 1, rising), where(north, side - rising - 1, falling)


def _spread(value: Any) -> Any:
    """Return *value* with a zero bit after each of its 32 bits."""
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ):
        value = (value | value << shift) & mask
    return value


AB_ZERO_POINT = 3631e9
"""Flux of AB magnitude 0. [nJy]  (Oke & Gunn 1983: 3631 Jy.)"""


def flux_of(magnitude: Numbers) -> Numbers:
    """Return the flux [nJy] of an AB magnitude; infinite where it is too large for a float."""
    return AB_ZERO_POINT * ten_to(-0.4 * magnitude)


def magnitude_of(flux: Numbers) -> Numbers:
    """Return the AB magnitude of the size of a *flux* [nJy]; NaN at zero."""
    size = abs(flux) / AB_ZERO_POINT
    return -2.5 * log10(where(size > 0, size, math.nan))


def error_of(flux: Numbers, magnitude_error: Numbers) -> Numbers:
    """Return the standard error of *flux*, in its unit, from that of its magnitude."""
    return abs(flux) * magnitude_error * math.log(10) / 2.5


SECONDS_PER_DAY = 86_400.0
MJD_ZERO = datetime(1858, 11, 17, tzinfo=UTC)


def mjd_of(moment: Any) -> float:
    """Return the modified Julian date of a *moment* in ISO 8601; NaN where it is none. [d]"""
    try:
        found = datetime.fromisoformat(str(moment))
    except ValueError:
        return math.nan
    return (found.replace(tzinfo=found.tzinfo or UTC) - MJD_ZERO) / timedelta(days=1)


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
