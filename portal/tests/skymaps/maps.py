"""Skymaps that tests make: a blob of probability, flat and multi-order."""

import gzip
import io
from typing import Any

import healpy
import numpy as np
from astropy.io import fits
from numpy.typing import NDArray

PLACE = 150.0, -30.0
"""Right ascension and declination of the blob. [deg]"""
SIGMA = 5.0
"""Of the blob. [deg]  Half of it lies within 109 deg², 90 % within 361."""


def blob(order: int, cells: Any = None) -> NDArray[np.float64]:
    """Return the density, not normalised, in cells of *order*, nested scheme."""
    which = np.arange(12 << (2 * order)) if cells is None else cells
    there = np.array(healpy.pix2vec(1 << order, which, nest=True))
    cosine = healpy.ang2vec(*PLACE, lonlat=True) @ there
    return np.exp((cosine - 1) / np.deg2rad(SIGMA) ** 2)


def file_of(columns: dict[str, Any], **cards: Any) -> bytes:
    """Return a FITS file with a table of *columns*."""
    made = [
        fits.Column(name, {"i": "K", "f": "D"}[one.dtype.kind], array=one) for name, one in columns.items()
    ]
    table = fits.BinTableHDU.from_columns(made)
    table.header.update({"PIXTYPE": "HEALPIX", **cards})
    file = io.BytesIO()
    fits.HDUList([fits.PrimaryHDU(), table]).writeto(file)
    return file.getvalue()


def flat(order: int = 6, *, nested: bool = False) -> bytes:
    """Return a flat map, gzipped."""
    parts = blob(order)
    values = parts if nested else healpy.reorder(parts, n2r=True)
    scheme = "NESTED" if nested else "RING"
    return gzip.compress(file_of({"PROB": values / values.sum()}, ORDERING=scheme, NSIDE=1 << order))


def multi_order() -> bytes:
    """Return a map whose cells are fine near the blob and coarse elsewhere."""
    coarse = np.arange(12 << 6)
    near = blob(3, coarse) > 1e-4
    fine = (coarse[near, None] * 256 + np.arange(256)).ravel()
    uniq = np.concatenate([coarse[~near] + (4 << 6), fine + (4 << 14)])
    density = np.concatenate([blob(3, coarse[~near]), blob(7, fine)])
    area = np.concatenate(
        [np.full((~near).sum(), 4 * np.pi / (12 << 6)), np.full(len(fine), 4 * np.pi / (12 << 14))]
    )
    return file_of(
        {"UNIQ": uniq, "PROBDENSITY": density / (density * area).sum()}, ORDERING="NUNIQ", COORDSYS="C"
    )
