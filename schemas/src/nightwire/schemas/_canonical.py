"""Canonical attributes of many measurements at once, with the values that `Point` has for each."""

from collections.abc import Callable
from functools import cached_property, reduce
from typing import Any

import numpy as np

from nightwire.schemas._column import Array, Column, nulls, numbers
from nightwire.schemas._photometry import error_of, flux_of, magnitude_of
from nightwire.schemas._sky import ORDER, POLE, galactic, healpix
from nightwire.schemas._survey import Measurement
from nightwire.schemas._time import mjds_tai

NUMBERS = ("mjd_tai", "flux", "flux_error", "snr", "magnitude", "ra", "dec")
"""Attributes of a measurement that are numbers."""
PLACES = ("galactic_longitude", "galactic_latitude", "healpix")
"""Attributes that are made of the position."""


def ingredients(where: Measurement, attribute: str) -> list[str]:
    """Return the names of the fields that an attribute is made of, that without which it is nothing first."""
    flux = [where.flux, where.zero_point] if where.flux else [where.magnitude, where.sign]
    error = [where.flux_error, where.zero_point] if where.flux else [where.magnitude_error, *flux]
    made: dict[str, list[Any]] = {
        "mjd_tai": [where.time],
        "band": [where.band],
        "ra": [where.ra],
        "dec": [where.dec],
        "flux": flux,
        "flux_error": error,
        "snr": [*flux, *error],
        "magnitude": flux,
        **{place: [where.ra, where.dec] for place in PLACES},
    }
    return [name for name in made[attribute] if isinstance(name, str)]


_quiet = np.errstate(over="ignore", invalid="ignore")
"""What is too large for a float is infinite, as Python has it, and then no flux."""


class Canonical:
    """Canonical attributes of n measurements: float64 of shape (n,), NaN where `Point` has None.

    Args:
        where: Names the fields.
        field: Returns the column of a field's scalars, all null where there is no such field.
        count: n.
    """

    def __init__(self, where: Measurement, field: Callable[[str], Column], count: int) -> None:
        self.count = count
        self._where = where
        self._field = field

    @cached_property
    def ra(self) -> Array:
        """Right ascension. [deg, ICRS]"""
        return self._number(self._where.ra)

    @cached_property
    def dec(self) -> Array:
        """Declination. [deg, ICRS]"""
        return self._number(self._where.dec)

    @cached_property
    def mjd_tai(self) -> Array:
        """Modified Julian date on TAI. [d]"""
        return mjds_tai(self._number(self._where.time) - self._where.time_zero, self._where.time_scale)

    @cached_property
    def band(self) -> Array:
        """Name of the passband: object, None where there is none."""
        column = self._field(self._where.band)
        if not self._where.bands and column.values.dtype == object:
            return column.values
        items = column.items
        names = {one: self._where.bands.get(str(one), str(one)) for one in set(items) - {None}}
        return np.fromiter(map(names.get, items), object, self.count)

    @cached_property
    @_quiet
    def flux(self) -> Array:
        """Difference flux. [nJy]"""
        if self._where.flux:
            return self._scaled(self._where.flux)
        return _finite(self._signs * flux_of(self._number(self._where.magnitude)))

    @cached_property
    @_quiet
    def flux_error(self) -> Array:
        """Standard error of `flux`. [nJy]"""
        if self._where.flux:
            return self._scaled(self._where.flux_error)
        return _finite(error_of(self.flux, self._number(self._where.magnitude_error)))

    @cached_property
    @_quiet
    def snr(self) -> Array:
        """Size of `flux` over `flux_error`."""
        return np.abs(self.flux) / np.where(self.flux_error == 0, np.nan, self.flux_error)

    @cached_property
    def magnitude(self) -> Array:
        """AB magnitude of the size of `flux`."""
        found: Array = magnitude_of(self.flux)
        return found

    def place(self, attribute: str) -> Column:
        """Return the column of an attribute of `PLACES`."""
        if attribute == "healpix":
            return self.healpix(ORDER)
        longitude, latitude = self._galactic
        return numbers(longitude if attribute == "galactic_longitude" else latitude)

    def healpix(self, order: int) -> Column:
        """Return the column of pixel numbers, int64."""
        values = np.zeros(self.count, np.int64)
        values[self._placed] = healpix(self.ra[self._placed], self.dec[self._placed], order)
        return Column(values, ~self._placed)

    @cached_property
    def _galactic(self) -> tuple[Array, Array]:
        return galactic(np.where(self._placed, self.ra, np.nan), np.where(self._placed, self.dec, np.nan))

    @cached_property
    def _placed(self) -> Array:
        """Where there is a position."""
        return ~np.isnan(self.ra) & (np.abs(self.dec) <= POLE)

    @cached_property
    def _signs(self) -> Array:
        if not self._where.sign:
            return np.ones(self.count)
        signs = np.fromiter(self._field(self._where.sign).items, object, self.count)
        negative = reduce(np.logical_or, [signs == one for one in self._where.negative])
        return np.where(negative, -1.0, 1.0)

    def _number(self, name: str | None) -> Array:
        found = self._field(name) if name else nulls(self.count)
        values = np.where(found.null, np.nan, found.values.astype(np.float64))
        values[np.isin(values, self._where.absent) | np.isinf(values)] = np.nan
        return values

    def _scaled(self, name: str | None) -> Array:
        values, zero_point = self._number(name), self._where.zero_point
        if not zero_point:
            return values
        zero = self._number(zero_point) if isinstance(zero_point, str) else np.full(self.count, zero_point)
        return _finite(values * flux_of(zero))


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)
