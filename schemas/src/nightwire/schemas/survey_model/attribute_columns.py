"""Canonical attributes of many measurements at once, with the values that `Point` has for each."""

from collections.abc import Callable
from functools import cached_property, reduce

import numpy as np

from nightwire.schemas.survey_model.astro import ORDER, POLE, galactic, healpix, mjd_of, mjds_tai
from nightwire.schemas.survey_model.attribute_formulas import Formulas
from nightwire.schemas.survey_model.column import Array, Column, nulls, numbers
from nightwire.schemas.survey_model.description import Measurement


class Canonical(Formulas):
    """Canonical attributes of n measurements, all null where there is no such field.

    Args:
        measurement: Names the fields.
        field: Returns the column of a field's scalars, all null where there is no such field.
        count: n.
    """

    def __init__(self, measurement: Measurement, field: Callable[[str], Column], count: int) -> None:
        self._measurement = measurement
        self.count = count
        self._field = field
        self._values: dict[str, Array] = {}

    def canonical(self, attribute: str) -> Array:
        """Return an attribute, shape (n,): float64, NaN where `Point` has None; ``band``:
        object.
        """
        found = self._values.get(attribute)
        if found is None:
            # too large is infinite, and then no flux
            with np.errstate(over="ignore", invalid="ignore"):
                found = self._values[attribute] = getattr(self, f"_{attribute}")()
        return found

    def _band(self) -> Array:
        """Names of passbands."""
        column = self._field(self._measurement.band) if self._measurement.band else nulls(self.count)
        if not self._measurement.bands and column.values.dtype == object:
            return column.values
        items = column.items
        names = {one: self._measurement.bands.get(str(one), str(one)) for one in set(items) - {None}}
        return np.fromiter(map(names.get, items), object, self.count)

    def position(self, attribute: str) -> Column:
        """Return the column of an attribute of `POSITION_ATTRIBUTES`."""
        if attribute == "healpix":
            return self.healpix(ORDER)
        longitude, latitude = self._galactic
        return numbers(longitude if attribute == "galactic_longitude" else latitude)

    def healpix(self, order: int) -> Column:
        """Return the column of pixel numbers, int64."""
        values = np.zeros(self.count, np.int64)
        known, ra, dec = self._has_position, self.canonical("ra"), self.canonical("dec")
        values[known] = healpix(ra[known], dec[known], order)
        return Column(values, ~known)

    @cached_property
    def _galactic(self) -> tuple[Array, Array]:
        known = self._has_position
        return galactic(
            np.where(known, self.canonical("ra"), np.nan), np.where(known, self.canonical("dec"), np.nan)
        )

    @cached_property
    def _has_position(self) -> Array:
        return ~np.isnan(self.canonical("ra")) & (np.abs(self.canonical("dec")) <= POLE)

    def _sign(self) -> Array:
        if not self._measurement.sign:
            return np.ones(self.count)
        signs = np.fromiter(self._field(self._measurement.sign).items, object, self.count)
        negative = reduce(np.logical_or, [signs == one for one in self._measurement.negative])
        return np.where(negative, -1.0, 1.0)

    def _on_tai(self, time: Array) -> Array:
        return mjds_tai(time, self._measurement.time_scale)

    def _number(self, name: str | None) -> Array:
        found = self._field(name) if name else nulls(self.count)
        if name == self._measurement.time and found.values.dtype == object:
            found = numbers(np.fromiter(map(mjd_of, found.items), float, self.count))
        values = np.where(found.null, np.nan, found.values.astype(np.float64))
        values[np.isin(values, self._measurement.absent) | np.isinf(values)] = np.nan
        return values
