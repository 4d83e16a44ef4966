"""Fluxes and AB magnitudes, of one measurement or of arrays of them."""

import math

from nightwire.schemas._elementwise import Numbers, log10, ten_to, where

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
