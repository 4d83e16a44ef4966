"""Orientation of a stamp on the sky, by the world coordinates in its own header."""

import io
import math
import warnings
from dataclasses import dataclass
from itertools import islice
from typing import Any

from nightwire.schemas import Stamp
from nightwire.schemas.stamps import claims_too_much

MAX_FILE, MAX_HDUS = 8 << 20, 8
"""Largest file whose headers are read [byte], and how many HDUs of it."""
WCS_CARDS = (
    *(f"{name}{axis}" for name in ("CTYPE", "CUNIT", "CRVAL", "CRPIX", "CDELT", "CROTA") for axis in "12"),
    *(f"{name}{place}" for name in ("CD", "PC") for place in ("1_1", "1_2", "2_1", "2_2")),
)
"""All cards that are read: others let wcslib take memory without end or write past its own."""


@dataclass(frozen=True)
class Orientation:
    """Scale and directions of a stamp.

    Attributes:
        scale: Size of a pixel. [arcsec]
        north: Unit vector to the north, x to the right and y upward.
        east: That to the east.
    """

    scale: float
    north: tuple[float, float]
    east: tuple[float, float]


def orientation(stamp: Stamp) -> Orientation | None:
    """Return the orientation of *stamp*; None where its header does not have it.

    Raises:
        StampError: It is no FITS file.
    """
    from astropy.io import fits
    from astropy.wcs import WCS

    packed = stamp.fits
    if len(packed) > MAX_FILE or claims_too_much(packed):
        return None
    with warnings.catch_warnings():  # headers of strangers
        warnings.simplefilter("ignore")
        try:
            with fits.open(io.BytesIO(packed), memmap=False, disable_image_compression=True) as units:
                found = (
                    WCS(_wcs_cards(unit.header), naxis=2)
                    for unit in islice(units, MAX_HDUS)
                    if unit.is_image and len(unit.shape) >= 2
                )
                wcs = next((one for one in found if one.has_celestial or _is_local(one)), None)
                return None if wcs is None else _from_matrix(wcs.pixel_scale_matrix)
        except Exception:  # noqa: BLE001  (astropy raises whatever a stranger's header leads to)
            return None


def _wcs_cards(header: Any) -> Any:
    """Return the `WCS_CARDS` of *header*."""
    from astropy.io import fits

    return fits.Header([(name, header[name]) for name in WCS_CARDS if name in header])


def _is_local(wcs: Any) -> bool:
    """Whether *wcs* is Rubin's: a matrix in degrees about a place, without the projection's name.

    As `makeLocalTransformMatrix` of ap_association writes it; its +Y agrees with ROTPA.
    """
    return not any(wcs.wcs.ctype) and wcs.wcs.has_pc() and bool(wcs.wcs.crval.any())


def _from_matrix(matrix: Any) -> Orientation | None:
    """Return the orientation of a matrix from pixels to degrees east and north, shape (2, 2)."""
    (a, b), (c, d) = matrix.tolist()
    determinant = a * d - b * c
    scale = math.sqrt(abs(determinant)) * 3600
    if not (math.isfinite(scale) and 1e-3 < scale < 3600):
        return None
    return Orientation(
        scale, _unit(-b / determinant, a / determinant), _unit(d / determinant, -c / determinant)
    )


def _unit(x: float, y: float) -> tuple[float, float]:
    length = math.hypot(x, y)
    return x / length, y / length
