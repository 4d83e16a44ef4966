"""Maps of the sky (MOC) on disk: the ranges of HEALPix pixels that they cover."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.core.catalogues.catalogue import Description
from nightwire.core.catalogues.files import CatalogueError, beginning, told
from nightwire.core.catalogues.zone_index import Array
from nightwire.schemas.survey_model import healpix

ORDER = 29
"""Of the pixels whose ranges are kept: the finest there are."""


class SkyMap:
    """One version of a map.

    Args:
        folder: Holds its ranges.
        description: What is known of it.

    Raises:
        CatalogueError: Its ranges are not whole.
    """

    def __init__(self, folder: Path, description: Description) -> None:
        self.description = description
        file = folder / "ranges"
        self._ranges: Array = np.fromfile(file, np.int64)
        if file.stat().st_size != 16 * description.rows:
            raise CatalogueError(f"the files of {folder} are not whole: remove it, and add it anew")

    def contains(self, ra: Array, dec: Array) -> pa.Array:
        """Return which positions [deg], shape (n,), lie within; those that are NaN do not."""
        known = np.flatnonzero(np.isfinite(ra) & (np.abs(dec) <= 90.0))
        pixels = healpix(ra[known] % 360.0, dec[known], ORDER)
        inside = np.zeros(len(ra), bool)
        # begins and ends in turn: within after an odd number of them
        inside[known] = np.searchsorted(self._ranges, pixels, "right") % 2 == 1
        return pa.array(inside)


def read_map(path: Path) -> tuple[Array, float]:
    """Return the ranges of a map, begins and ends in turn, and its part of the sky.

    Raises:
        CatalogueError: It is none; or what reads maps is missing.
    """
    try:
        from mocpy import MOC
    except ImportError as error:
        raise CatalogueError(
            "maps of the sky take the package mocpy: pip install 'nightwire[catalogues]'"
        ) from error
    begin = beginning(path)
    form = "fits" if begin.startswith(b"SIMPLE") else "json" if begin.lstrip().startswith(b"{") else "ascii"
    with told(path):
        found: Any = MOC.load(str(path), form)
        return np.asarray(found.to_depth29_ranges, np.int64).ravel(), float(found.sky_fraction)
