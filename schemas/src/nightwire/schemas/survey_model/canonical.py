"""Canonical attributes of many measurements at once, with the values that `Point` has for each."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from nightwire.schemas.avro.plans.schema import Types, has_field, parse
from nightwire.schemas.survey_model.astro import (
    ORDER,
    POLE,
    error_of,
    flux_of,
    galactic,
    healpix,
    magnitude_of,
    mjds_tai,
)
from nightwire.schemas.survey_model.column import Array, Column, nulls, numbers
from nightwire.schemas.survey_model.description import Measurement
from nightwire.schemas.survey_model.nested import PRESENCE_MARK, witness

if TYPE_CHECKING:
    from nightwire.schemas.survey_model.view import Survey


NUMBER_ATTRIBUTES = ("mjd_tai", "flux", "flux_error", "snr", "magnitude", "ra", "dec")
"""Attributes of a measurement that are numbers."""
POSITION_ATTRIBUTES = ("galactic_longitude", "galactic_latitude", "healpix")
"""Attributes that are made of the position."""


def source_fields(where: Measurement, attribute: str) -> list[str]:
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
        **{place: [where.ra, where.dec] for place in POSITION_ATTRIBUTES},
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
        """Return the column of an attribute of `POSITION_ATTRIBUTES`."""
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


ID_ATTRIBUTES = {
    "id": "alert",
    "object_id": "object",
    "solar_system_id": "solar_system_object",
    "visit": "visit",
}
"""Canonical names of ids, and what a survey's description calls them."""
MEASUREMENT_ATTRIBUTES = (*NUMBER_ATTRIBUTES, "band")
"""Attributes of a measurement."""
SERIES_ATTRIBUTES = ("history", "light_curve")
"""Arrays of measurements."""
WHOLE = (*SERIES_ATTRIBUTES, "colour", "magnitudes")
"""What is made of all attributes of measurements."""


def required_fields(names: Iterable[str], survey: "Survey", schema: Mapping[str, Any] | None) -> list[str]:
    """Return the dotted paths of what *names* are made of; see `AlertTable.fields`."""
    ids = survey.description.ids
    paths = [path for kind in ID_ATTRIBUTES.values() for path in getattr(ids, kind)]
    types = None if schema is None else Types(parse(schema))
    paths += [path for name in names for path in _paths(name, survey, types)]
    return [path for path in dict.fromkeys(paths) if types is None or has_field(types, path)]


def source_paths(where: Measurement, attribute: str) -> list[str]:
    """Return the dotted paths of what an attribute of a measurement is made of."""
    return [f"{where.path}.{name}" for name in source_fields(where, attribute)]


def _paths(name: str, survey: "Survey", types: Types | None) -> list[str]:
    """Return the dotted paths that a name stands for."""
    if name.endswith(PRESENCE_MARK):
        return [] if types is None else witness(name.removesuffix(PRESENCE_MARK), types)
    described = survey.description
    kind, _, attribute = name.partition(".")
    if name in ID_ATTRIBUTES:
        return []
    if name == "stamps":
        return list(described.stamps.values())
    if kind in WHOLE or (kind in SERIES_ATTRIBUTES and attribute in MEASUREMENT_ATTRIBUTES):
        chosen = [attribute] if kind in SERIES_ATTRIBUTES and attribute else list(MEASUREMENT_ATTRIBUTES)
        parts = [*described.history, *([] if kind == "history" else [described.source])]
        return [path for where in parts for one in ("mjd_tai", *chosen) for path in source_paths(where, one)]
    attribute = "healpix" if name == "healpix_at" else name
    if attribute in MEASUREMENT_ATTRIBUTES or attribute in POSITION_ATTRIBUTES:
        return source_paths(described.source, attribute)
    return [name]
