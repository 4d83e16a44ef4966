"""Views of the alerts of all surveys: their own fields by name, and canonical attributes."""

import math
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from nightwire.schemas.avro.plans.schema import Types, has_field, parse
from nightwire.schemas.errors import DecodeError
from nightwire.schemas.survey_model.astro import ORDER, POLE, galactic, healpix, mjd_of, mjd_tai
from nightwire.schemas.survey_model.attribute_formulas import Formulas
from nightwire.schemas.survey_model.attribute_names import LIGHT_CURVE_NUMBERS, NOT_MATCHED, MatchName
from nightwire.schemas.survey_model.description import (
    Description,
    Measurement,
    arrays,
    description,
    first,
    getter,
)

if TYPE_CHECKING:
    import numpy as np

GZIP = b"\x1f\x8b"


class Point(Formulas, Mapping[str, Any]):
    """One measurement: its own fields by name, and canonical attributes, None where it has none.

    Args:
        record: The decoded record.
        measurement: Where its values lie.
    """

    def __init__(self, record: Mapping[str, Any], measurement: Measurement) -> None:
        self._measurement = measurement
        self._record = self._source = record  # the latter has the measurement's fields

    def __getitem__(self, name: str) -> Any:
        return self._record[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} mjd_tai={self.mjd_tai} flux={self.flux} band={self.band}>"

    @property
    def ra(self) -> float | None:
        """Right ascension. [deg, ICRS]"""
        return _none_if_nan(self._ra())

    @property
    def dec(self) -> float | None:
        """Declination. [deg, ICRS]"""
        return _none_if_nan(self._dec())

    @cached_property
    def mjd_tai(self) -> float | None:
        """Time of the exposure, mostly its midpoint, as modified Julian date on TAI. [d]"""
        return _none_if_nan(self._mjd_tai())

    @property
    def band(self) -> str | None:
        """Name of the passband: u, g, r, i, z, y, or as the survey names it."""
        band = self._source.get(self._measurement.band or "")
        return None if band is None else self._measurement.bands.get(str(band), str(band))

    @cached_property
    def flux(self) -> float | None:
        """Difference flux, negative where fainter than the template. [nJy]"""
        return _none_if_nan(self._flux())

    @cached_property
    def flux_error(self) -> float | None:
        """Standard error of `flux`. [nJy]"""
        return _none_if_nan(self._flux_error())

    @property
    def snr(self) -> float | None:
        """Size of `flux` over `flux_error`."""
        return _none_if_nan(self._snr())

    @property
    def magnitude(self) -> float | None:
        """AB magnitude of the size of `flux`, whose sign it loses; None at zero.  [AB mag]"""
        return _none_if_nan(self._magnitude())

    def canonical(self, attribute: str) -> float:
        """Return an attribute's number; NaN for None."""
        found = getattr(self, attribute)
        return math.nan if found is None else found

    def _number(self, name: str | None) -> float:
        value = self._source.get(name) if name else None
        if name == self._measurement.time and isinstance(value, str):
            value = mjd_of(value)
        if value is None or value in self._measurement.absent or not math.isfinite(value):
            return math.nan
        return float(value)

    def _sign(self) -> float:
        sign = self._measurement.sign
        return -1.0 if sign and self._source.get(sign) in self._measurement.negative else 1.0

    def _on_tai(self, time: float) -> float:
        if math.isnan(time):
            return time
        try:
            return mjd_tai(time, self._measurement.time_scale)
        except ValueError:  # in UTC, before 1972
            return math.nan


class AlertView(Point):
    """An alert: its own fields by name, and canonical attributes, None where it has none.

    Values are found when asked for, so a view costs next to nothing.

    Args:
        alert: The decoded alert.
        survey: Knows where its values lie.
    """

    def __init__(self, alert: Mapping[str, Any], survey: "Survey") -> None:
        self._measurement = survey.description.source
        self._record = alert
        self._survey = survey

    @cached_property
    def _source(self) -> Mapping[str, Any]:  # type: ignore[override]  # found when it is asked for
        return self._survey.source(self._record) or {}

    @property
    def id(self) -> Any:
        """The alert's id: a number or a string, as its survey has it."""
        return self._survey.find_alert_id(self._record)

    @property
    def object_id(self) -> Any:
        """Id of the object outside the solar system that it belongs to."""
        return self._survey.object_id(self._record)

    @property
    def solar_system_id(self) -> Any:
        """Id of the solar-system object that it belongs to."""
        return self._survey.solar_system_id(self._record)

    @property
    def visit(self) -> int | None:
        """The visit (exposure)."""
        return self._survey.visit(self._record)

    @cached_property
    def history(self) -> list[Point]:
        """Earlier measurements and forced photometry, by time; those without a time come last."""
        return self._own_history()

    def _own_history(self) -> list[Point]:
        points = [Point(record, where) for record, where in arrays(self._record, self._survey.history)]
        return sorted(points, key=_time_of)

    def light_curve(self) -> dict[str, "np.ndarray[Any, Any]"]:
        """Return the history and this measurement itself, by time, as arrays of shape (n,).

        ``mjd_tai`` [d], ``flux`` and ``flux_error`` [nJy], ``ra`` and ``dec`` [deg]: float64, NaN
        where there is nothing; ``band``: text, empty where there is none.
        """
        import numpy as np

        points = sorted([*self.history, self], key=_time_of)
        columns = {
            name: np.array([getattr(point, name) for point in points], float) for name in LIGHT_CURVE_NUMBERS
        }
        return {**columns, "band": np.array([point.band or "" for point in points], str)}

    @property
    def galactic_longitude(self) -> float | None:
        """Galactic longitude, 0 to 360. [deg]"""
        return None if self._galactic is None else self._galactic[0]

    @property
    def galactic_latitude(self) -> float | None:
        """Galactic latitude. [deg]"""
        return None if self._galactic is None else self._galactic[1]

    @property
    def healpix(self) -> int | None:
        """Number of its HEALPix pixel of order 12 (51.5 arcsec wide), nested scheme."""
        return self.healpix_at(ORDER)

    def healpix_at(self, order: int) -> int | None:
        """Return the number of the HEALPix pixel that it lies in, nested scheme.

        Args:
            order: 0 to 29; the sphere has 12 * 4**order pixels.

        Raises:
            ValueError: There is no such order.
        """
        return None if self._position is None else healpix(*self._position, order)

    def magnitudes(self, band: str) -> "np.ndarray[Any, Any]":
        """Return the AB magnitudes in one band by time, shape (k,): history and this measurement.

        Measurements without a time or a magnitude are left out.  Magnitudes are of the size of the
        difference flux, forced photometry at the edge of the noise among them.
        """
        import numpy as np

        points = sorted([*self.history, self], key=_time_of)
        there = [one for one in points if one.band == band and one.mjd_tai is not None]
        return np.array([one.magnitude for one in there if one.magnitude is not None], float)

    def colour(self, blue: str, red: str) -> float | None:
        """Return the newest magnitude in one band minus the newest in another. [mag]

        This measurement counts; None where one of the bands has none.
        """
        one, other = self.magnitudes(blue), self.magnitudes(red)
        return float(one[-1] - other[-1]) if len(one) and len(other) else None

    def match(self, catalogue: str, radius: float) -> Mapping[str, Any] | None:
        """Return the object of a catalogue that is nearest; None where none is near.

        It has the catalogue's columns by name, ``separation`` [arcsec], and ``count``: how many are
        near.  Found by the filter engine, before filters are asked.

        Args:
            catalogue: Its name.
            radius: Largest separation. [arcsec]

        Raises:
            KeyError: It was not matched with.
        """
        return self._added(MatchName.of(catalogue, radius))  # type: ignore[no-any-return]

    def in_moc(self, name: str) -> bool:
        """Return whether it lies within a map of the sky.

        Raises:
            KeyError: That was not looked up.
        """
        return bool(self._added(MatchName.of_map(name)))

    def _added(self, name: MatchName) -> Any:
        """Return what a catalogue adds."""
        try:
            return self._own_added(str(name))
        except KeyError:
            raise KeyError(f"{name.call}: {NOT_MATCHED}") from None

    def _own_added(self, name: str) -> Any:
        return self._record[name]

    @cached_property
    def stamps(self) -> dict[str, bytes]:
        """The picture stamps that it has, by name (difference, science, template), as FITS.

        Raises:
            DecodeError: One is packed with gzip and cannot be unpacked.
        """
        return self._unpacked_stamps()

    @cached_property
    def _galactic(self) -> tuple[float, float] | None:
        return None if self._position is None else galactic(*self._position)

    @property
    def _position(self) -> tuple[float, float] | None:
        ra, dec = self.ra, self.dec
        return None if ra is None or dec is None or abs(dec) > POLE else (ra, dec)

    def _unpacked_stamps(self) -> dict[str, bytes]:
        found = ((name, get(self._record)) for name, get in self._survey.stamps.items())
        return {name: _unpacked(name, bytes(stamp)) for name, stamp in found if stamp}


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _time_of(point: Point) -> float:
    return math.inf if point.mjd_tai is None else point.mjd_tai


class Survey:
    """What nightwire knows of a survey's alerts."""

    def __init__(self, described: Description) -> None:
        self.description = described
        self.name = described.name
        self.stamp_names = list(described.stamps)
        ids = described.ids
        self.find_alert_id = first([getter(path) for path in ids.alert], ids.absent)
        self.object_id = first([getter(path) for path in ids.object], ids.absent)
        self.solar_system_id = first([getter(path) for path in ids.solar_system_object], ids.absent)
        self._visit = first([getter(path) for path in ids.visit], ids.absent)
        self.source = getter(described.source.path)
        self.history = [(getter(one.path), one) for one in described.history]
        self.stamps = {name: getter(path) for name, path in described.stamps.items()}

    def alert_id(self, alert: Mapping[str, Any]) -> int | str:
        """Return the alert's id.

        Raises:
            DecodeError: It has none: it is no alert of this survey.
        """
        found = self.find_alert_id(alert)
        if found is None:
            raise DecodeError(
                f"no alert of survey {self.name}: no {' or '.join(self.description.ids.alert)} in it"
            )
        return found  # type: ignore[no-any-return]

    def key(self, alert: Mapping[str, Any]) -> bytes:
        """Return the alert's Kafka key: the id of its object or solar-system object, else its own.

        Raises:
            DecodeError: It has none of these: it is no alert of this survey.
        """
        found = self.object_id(alert)
        if found is None:
            found = self.solar_system_id(alert)
        return str(self.alert_id(alert) if found is None else found).encode()

    def visit(self, alert: Mapping[str, Any]) -> int | None:
        """Return the visit (exposure) that the alert is from."""
        found = self._visit(alert)
        return None if found is None else int(found) // self.description.ids.visit_divisor

    def fields(self, schema: Mapping[str, Any], *, history: bool = True, stamps: bool = False) -> list[str]:
        """Return the dotted paths in *schema* that canonical attributes are made of.

        An alert that was decoded with these alone (``Codec.decode(body, fields)``) can be viewed.

        Args:
            schema: Of the alerts.
            history: Whether the history is wanted.
            stamps: Whether the stamps are.
        """
        described = self.description
        ids = described.ids
        paths = [*ids.alert, *ids.object, *ids.solar_system_object, *ids.visit, *described.source.paths]
        if history:
            paths += [path for one in described.history for path in one.paths]
        if stamps:
            paths += described.stamps.values()
        types = Types(parse(schema))
        return [path for path in dict.fromkeys(paths) if has_field(types, path)]

    def view(self, alert: Mapping[str, Any]) -> AlertView:
        """Return the alert with canonical attributes."""
        return AlertView(alert, self)


@cache
def survey(name: str) -> Survey:
    """Return the survey of that name.

    Raises:
        SchemaError: There is no description of it.
    """
    return Survey(description(name))


def _unpacked(name: str, stamp: bytes) -> bytes:
    if not stamp.startswith(GZIP):
        return stamp
    from nightwire.schemas.stamps import StampError, gunzip  # NumPy takes 0.1 s to import

    try:
        return gunzip(stamp)
    except StampError as error:
        raise DecodeError(f"stamp {name} cannot be unpacked: {error}") from error
