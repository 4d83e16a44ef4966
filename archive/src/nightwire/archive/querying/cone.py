"""A cone on the sky as ranges of HEALPix pixels of order 29.  Pure."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from astropy import units
from astropy.coordinates import Latitude, Longitude
from cdshealpix.nested import cone_search

from nightwire.archive.storage import ArchiveError
from nightwire.core.catalogues import separations

ORDER = 29
MAX_RANGES = 32
"""Most ranges of a search: of more, the nearest are merged."""
EXTRA_ORDERS = 2
"""Orders by which the smallest pixels are finer than the radius."""

MAX_RADIUS = 90.0
"""A larger cone is searched as the whole sky: cdshealpix leaves out parts of it. [deg]"""

Range = tuple[int, int]
"""The first pixel, and the last."""


@dataclass(frozen=True)
class Cone:
    """A circle on the sky.

    Attributes:
        ra: Right ascension of its centre. [deg, ICRS]
        dec: Declination of its centre. [deg]
        radius: Its radius. [deg]

    Raises:
        ArchiveError: A number is out of range; it is named.
    """

    ra: float
    dec: float
    radius: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.ra):
            raise ArchiveError(f"ra is {self.ra}: a right ascension in degrees is wanted")
        if not -90.0 <= self.dec <= 90.0:
            raise ArchiveError(f"dec is {self.dec}: a declination lies from -90 to +90 degrees")
        if not 0.0 <= self.radius <= 180.0:
            raise ArchiveError(f"radius is {self.radius}: it lies from 0 to 180 degrees")

    def distances(self, ra: Any, dec: Any) -> Any:
        """Return the distance of each position from the centre. [deg]

        Args:
            ra: Right ascensions, an Arrow array. [deg]
            dec: Declinations. [deg]
        """
        centre, others = np.array([self.ra, self.dec]), [np.asarray(one, float) for one in (ra, dec)]
        return pa.array(separations(centre[:1], centre[1:], others[0], others[1]) / 3600.0)

    @property
    def ranges(self) -> list[Range]:
        """Ranges of pixels, in order, that cover the cone, and a little more."""
        if self.radius > MAX_RADIUS:
            return [(0, 12 * 4**ORDER - 1)]
        depth = min(ORDER - 2, max(0, math.ceil(math.log2(58.6 / max(self.radius, 1e-6))) + EXTRA_ORDERS))
        centre = Longitude(self.ra % 360.0, units.deg), Latitude(self.dec, units.deg)
        pixels, depths, _ = cone_search(*centre, self.radius * units.deg, depth, depth_delta=2)
        found = [
            (int(pixel) << shift, ((int(pixel) + 1) << shift) - 1)
            for pixel, shift in zip(pixels, (2 * (ORDER - int(one)) for one in depths), strict=True)
        ]
        return merge_ranges(sorted(found), MAX_RANGES)


def merge_ranges(ranges: list[Range], most: int) -> list[Range]:
    """Return at most *most* ranges that cover *ranges*, in order; the smallest gaps are closed."""
    gaps = sorted((later[0] - one[1] for one, later in pairwise(ranges)), reverse=True)
    widest = max(1, gaps[most - 1] if len(gaps) >= most else 1)
    made: list[Range] = []
    for low, high in ranges:
        if made and low - made[-1][1] <= widest:
            made[-1] = made[-1][0], high
        else:
            made.append((low, high))
    return made
