"""The regions that hold 50 % and 90 % of the probability in a skymap's file.  Pure.

Flat HEALPix maps and multi-order ones (column UNIQ), as LIGO, Virgo, KAGRA and Fermi publish them:
https://emfollow.docs.ligo.org/userguide/tutorial/multiorder_skymaps.html
"""

import io
import warnings
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nightwire.schemas.stamps import claims_too_much

MAX_UNPACKED = 128 << 20
"""Largest file, unpacked. [byte]"""
MAX_HDUS = 8
"""HDUs of a file among which the map is searched."""
ORDER = 7
"""Of a flat map's finest cells, 27 arcmin wide: finer ones are added up."""
MAX_ORDER = 29
"""Order of the finest HEALPix cells."""
SQUARE_DEGREES = 41_252.96
"""Of the whole sky."""
LEVELS = 0.5, 0.9
"""Parts of the probability."""
PROBABILITIES = "PROBDENSITY", "PROB", "PROBABILITY"
"""Columns that hold the map."""


class SkymapError(Exception):
    """A file is no skymap that can be drawn."""


@dataclass(frozen=True)
class Regions:
    """The localization of an event.

    Attributes:
        maps: The smallest region with each of `LEVELS` of the probability (MOC).
        areas: Of each. [deg²]
        peak: Right ascension and declination of the most probable cell. [deg]
    """

    maps: tuple[Any, ...]
    areas: tuple[float, ...]
    peak: tuple[float, float]


def regions(packed: bytes) -> Regions:
    """Return the regions of the map in *packed*, a FITS file, perhaps gzipped.

    Raises:
        SkymapError: The file is no skymap, or too large.
    """
    from mocpy import MOC

    uniq, parts = _cells(unpacked(packed))
    maps = tuple(
        MOC.from_valued_healpix_cells(uniq, parts, max_depth=MAX_ORDER, cumul_to=level, strict=False)
        for level in LEVELS
    )
    orders = _orders(uniq)
    densest = int(np.argmax(parts * 4.0**orders))
    return Regions(maps, tuple(one.sky_fraction * SQUARE_DEGREES for one in maps), _centre(uniq[densest]))


def unpacked(packed: bytes) -> bytes:
    """Return the file in *packed*, decompressed if it is gzipped.

    Raises:
        SkymapError: It is truncated, or too large.
    """
    if not packed.startswith(b"\x1f\x8b"):
        return packed
    unpacker = zlib.decompressobj(31)
    try:
        found = unpacker.decompress(packed, MAX_UNPACKED + 1)
    except zlib.error as error:
        raise SkymapError(f"it is no whole gzip file: {error}") from error
    if len(found) > MAX_UNPACKED:
        raise SkymapError(f"unpacked it has more than {MAX_UNPACKED >> 20} MiB; a multi-order map has less")
    if not unpacker.eof:
        raise SkymapError("it is no whole gzip file")
    return found


def _cells(file: bytes) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the cells of a map, as UNIQ, and the part of the probability in each."""
    from astropy.io import fits

    if not file.startswith(b"SIMPLE  ="):
        raise SkymapError("it is no FITS file")
    if claims_too_much(file):
        raise SkymapError("its header promises more than 999 axes or columns")
    with warnings.catch_warnings():  # headers of strangers
        warnings.simplefilter("ignore")
        try:
            with fits.open(io.BytesIO(file), memmap=False, disable_image_compression=True) as units:
                return _read(_table(units), len(file))
        except SkymapError:
            raise
        except Exception as error:  # astropy raises whatever a stranger's header leads to
            raise SkymapError(f"it cannot be read: {type(error).__name__}: {str(error)[:200]}") from error


def _table(units: Any) -> Any:
    for one in islice(units, MAX_HDUS):
        if str(one.header.get("PIXTYPE", "")).strip() == "HEALPIX" and "TFIELDS" in one.header:
            return one
    raise SkymapError("it has no table of HEALPix cells")


def _read(table: Any, size: int) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    header = table.header
    if header["NAXIS1"] * header["NAXIS2"] + header.get("PCOUNT", 0) > size:
        raise SkymapError("its header promises more than the file holds")
    if str(header.get("COORDSYS", "C")).strip()[:1].upper() not in "CEI":  # equatorial, ICRS
        raise SkymapError(f"its cells are not equatorial: COORDSYS is {header['COORDSYS']!r}"[:200])
    names = {name.upper(): name for name in table.columns.names}
    if "UNIQ" in names:
        uniq = _numbers(table, names["UNIQ"], np.int64)
        if not len(uniq) or uniq.min() < 4 or uniq.max() >= 16 << (2 * MAX_ORDER):
            raise SkymapError("its cells (UNIQ) are not on the sky")
        values = _values(table, names)
        parts = values * 4.0 ** -_orders(uniq) if "PROBDENSITY" in names else values
        return _checked(uniq.astype(np.uint64), parts)
    return _checked(*_flat(_values(table, names), header))


def _values(table: Any, names: dict[str, str]) -> NDArray[np.float64]:
    known = next((names[name] for name in PROBABILITIES if name in names), None)
    if known is None:
        raise SkymapError(f"it has no column {', '.join(PROBABILITIES)}")
    return _numbers(table, known, np.float64)


def _numbers(table: Any, name: str, kind: type[Any]) -> NDArray[Any]:
    """Return a column, whose rows may hold several numbers each."""
    found = table.data[name]
    if found.dtype.kind not in "iuf":
        raise SkymapError(f"its column {name[:40]!r} holds no numbers")
    return np.asarray(found.ravel(), kind)


def _flat(values: NDArray[np.float64], header: Any) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the cells of a flat map; those finer than `ORDER` are added up."""
    import healpy

    if not healpy.isnpixok(len(values)) or not healpy.isnsideok(healpy.npix2nside(len(values)), nest=True):
        raise SkymapError(f"{len(values):,} cells are no whole map of the sky, in which NSIDE is 2ⁿ")
    nested = str(header.get("ORDERING", "RING")).strip().upper().startswith("NEST")
    if not nested:
        values = healpy.reorder(values, r2n=True)
    fine = max(0, int(np.log2(len(values) / 12)) // 2 - ORDER)
    parts = values.reshape(-1, 4**fine).sum(axis=1)
    return np.arange(len(parts), dtype=np.uint64) + np.uint64(len(parts) // 3), parts


def _checked(
    uniq: NDArray[np.uint64], parts: NDArray[np.float64]
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the cells above zero, their probabilities normalized to 1."""
    if len(uniq) != len(parts):
        raise SkymapError("it has not one probability for each cell")
    if not np.isfinite(parts).all() or parts.min() < 0:
        raise SkymapError("some of its probabilities are negative or no numbers (NaN)")
    if len(uniq) != len(np.unique(uniq)):
        raise SkymapError("it has a cell twice")
    if not 0 < (whole := float(parts.sum())) < np.inf:
        raise SkymapError("its probabilities are zero everywhere")
    there = parts > 0
    return uniq[there], parts[there] / whole


def _orders(uniq: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order of each cell; exact, as the mantissas of floats are not."""
    least = 4 ** np.arange(1, MAX_ORDER + 2, dtype=np.int64)
    return np.asarray(np.searchsorted(least, uniq.astype(np.int64), "right") - 1)


def _centre(uniq: Any) -> tuple[float, float]:
    import healpy

    order = int(_orders(np.array([uniq]))[0])
    cell = int(uniq) - 4 ** (order + 1)
    longitude, latitude = healpy.pix2ang(1 << order, cell, nest=True, lonlat=True)
    return float(longitude), float(latitude)
