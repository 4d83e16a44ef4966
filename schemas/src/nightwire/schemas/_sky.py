"""Positions on the sky in other coordinates: galactic, and HEALPix.  Of one, or of arrays of them."""

import math
from typing import Any

from nightwire.schemas._elementwise import Numbers, atan2, cos, sin, sqrt, truncated, where

ORDER = 12
"""Order of the HEALPix pixels of `AlertView.healpix`: 51.5 arcsec wide."""
MOST_ORDER = 29
"""Highest order whose nested pixels 64 bits can number."""

POLE = 90.0
"""Largest declination. [deg]"""

_DEGREE = math.pi / 180
_GALACTIC = (
    (-0.054875560416215368, -0.873437090234885049, -0.483835015548713227),
    (0.494109427875583674, -0.444829629960011178, 0.746982244497218891),
    (-0.867666149019004701, -0.198076373431201528, 0.455983776175066922),
)
"""From ICRS to galactic coordinates (ESA 1997, SP-1200, volume 1, section 1.5.3; digits as ERFA's icrs2g)."""


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
    if not 0 <= order <= MOST_ORDER:
        raise ValueError(f"HEALPix has orders 0 to {MOST_ORDER}, not {order}")
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

    The paper's sqrt(3 (1 - |z|)) is written by the cosine of the declination, which keeps its digits at the
    poles.
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
