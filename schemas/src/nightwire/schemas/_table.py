"""Many alerts at once: columns by canonical names, or by the survey's own; and any of them as one alert."""

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nightwire.schemas._canonical import PLACES, Canonical, ingredients
from nightwire.schemas._column import Array, Column, column, depth, missing, nulls, numbers
from nightwire.schemas._ids import first_of, visits
from nightwire.schemas._nested import Leaf, Reader, readers
from nightwire.schemas._presence import MARK, presence
from nightwire.schemas._row import RowView
from nightwire.schemas._series import Part, Series, last
from nightwire.schemas._survey import Measurement
from nightwire.schemas._wanted import IDS, MEASURED, SERIES, made_of, wanted

if TYPE_CHECKING:
    from nightwire.schemas._view import Survey


class AlertTable:
    """The columns of many alerts, by canonical names or the survey's dotted paths; each made when asked for.

    Canonical columns have the values of `AlertView`, to the bit: ``id``, ``object_id``, ``solar_system_id``,
    ``visit``, ``ra``, ``dec``, ``galactic_longitude``, ``galactic_latitude``, ``healpix``, ``mjd_tai``,
    ``band``, ``flux``, ``flux_error``, ``snr``, ``magnitude``; and as arrays ``history.flux`` (or another
    attribute of a measurement) in the order of `AlertView.history`, null where that has None, and
    ``light_curve.flux``, with this measurement itself, NaN or empty text where there is nothing.

    ``diaObject?`` tells where a record is there: bool; for an array of records, True for each item.

    A canonical column needs the fields that `fields` names.  Where some of them are not in the batch, because
    the schema has none, it is made of the rest, as `AlertView` does.

    Args:
        batch: One row per alert, columns named by dotted paths, as `AlertDecoder.columns` gives it.
        survey: Knows where canonical values lie.
    """

    def __init__(self, batch: "pa.RecordBatch", survey: "Survey") -> None:
        self.survey = survey
        self._batch = batch
        self._names = frozenset(batch.schema.names)
        self._made: dict[Hashable, Column] = {}

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __getitem__(self, name: str) -> Column:
        """Return a column.

        Raises:
            KeyError: The batch has not the fields that it is made of; names them.
        """
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._column(name)
        return found

    def healpix_at(self, order: int) -> Column:
        """Return `AlertView.healpix_at` of each alert: int64, null where there is no position.

        Raises:
            KeyError: The batch has no positions.
            ValueError: *order* is not from 0 to 29.
        """
        self._check(self._source_paths("healpix"), "healpix")
        return self._once(("healpix", order), lambda: self._source.healpix(order))

    def magnitudes(self, band: str) -> Column:
        """Return `AlertView.magnitudes` of each alert: arrays.

        Raises:
            KeyError: The batch has no light curves.
        """
        self._check_series("light_curve", "magnitude")
        return self._once(("magnitudes", band), lambda: self._light_curve.magnitudes(band))

    def colour(self, blue: str, red: str) -> Column:
        """Return `AlertView.colour` of each alert. [mag]

        Raises:
            KeyError: The batch has no light curves.
        """
        one, other = self.magnitudes(blue), self.magnitudes(red)
        return self._once(("colour", blue, red), lambda: numbers(last(one) - last(other)))

    def view(self, row: int) -> "RowView":
        """Return one alert as filters see it: an `AlertView` whose values are found when asked for.

        What is not in the batch raises KeyError, which names it.
        """
        return RowView(self, row)

    @staticmethod
    def fields(names: Iterable[str], survey: "Survey", schema: Mapping[str, Any] | None = None) -> list[str]:
        """Return the dotted paths of what *names* are made of; those of the ids and the visit always.

        Args:
            names: Canonical names, dotted paths, records with a question mark (which need *schema*), or what
                `AlertView` calls ``history``, ``light_curve``, ``colour``, ``magnitudes``, ``healpix_at`` and
                ``stamps``.
            survey: Of the alerts.
            schema: Of the alerts: paths that it does not have are left out; None = all.
        """
        return wanted(names, survey, schema)

    def raw(self, path: str) -> Column:
        """Return the column at a dotted path; all null where the schema has none.

        Raises:
            KeyError: It is not in the batch.
        """
        self._check([path], path)
        return self._once(("field", path), lambda: column(self._batch.column(path)))

    def series(self, kind: str) -> Series:
        """Return the measurements of ``history`` or ``light_curve``.

        Raises:
            KeyError: The batch has none.
        """
        self._check_series(kind, "mjd_tai")
        return self._history if kind == "history" else self._light_curve

    @cached_property
    def readers(self) -> Mapping[str, Reader]:
        """What reads the fields of an alert, as decoding would give them, in some row."""
        return readers([self._leaf(one) for one in self._batch.schema])

    def check_stamps(self) -> None:
        """Raise KeyError where the batch has no stamps."""
        if not self._names.intersection(self.survey.description.stamps.values()):
            self._check(self.survey.description.stamps.values(), "stamps")

    def _leaf(self, field: "pa.Field[Any]") -> Leaf:
        unknown = field.type == pa.null()
        return Leaf(
            tuple(field.name.split(".")),
            None if unknown else depth(field.type),
            partial(self.raw, field.name),
        )

    def _once(self, key: Hashable, make: Any) -> Column:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found

    def _column(self, name: str) -> Column:
        kind, _, attribute = name.partition(".")
        if name in IDS:
            return self._ids(name)
        if name in MEASURED or name in PLACES:
            self._check(self._source_paths(name), name)
            return self._source.place(name) if name in PLACES else _nullable(self._source, name)
        if kind in SERIES and attribute in MEASURED:
            return self._series_column(kind, attribute)
        return self._presence(name.removesuffix(MARK)) if name.endswith(MARK) else self.raw(name)

    def _presence(self, path: str) -> Column:
        below = sorted(one for one in self._names if one == path or one.startswith(f"{path}."))
        if not below:
            self._check([path], path)
        known = [one for one in below if self._batch.schema.field(one).type != pa.null()]
        return presence([self.raw(one) for one in known or below])

    def _ids(self, name: str) -> Column:
        ids = self.survey.description.ids
        paths = getattr(ids, IDS[name])
        there = [self.raw(path) for path in paths if path in self._names]
        if paths and not there:
            self._check(paths, name)
        found = first_of(there, ids.absent, len(self))
        return visits(found, ids.visit_divisor) if name == "visit" else found

    def _series_column(self, kind: str, attribute: str) -> Column:
        self._check_series(kind, attribute)
        series = self.series(kind)
        values = series.values(attribute)
        if kind == "history":
            null = missing(values) if attribute == "band" else np.isnan(values)
            return series.column(values, null)
        if attribute == "band":
            values = np.where(missing(values), "", values)
        return series.column(values, np.zeros(len(values), bool))

    @cached_property
    def _source(self) -> Canonical:
        return self._canonical(self.survey.description.source, len(self))

    @cached_property
    def _history(self) -> Series:
        return Series([self._part(one) for one in self.survey.description.history], len(self))

    @cached_property
    def _light_curve(self) -> Series:
        itself = Part("", self._source, np.arange(len(self) + 1))
        return Series([*self._history.parts, itself], len(self))

    def _part(self, where: Measurement) -> Part:
        """Return one array's measurements; none where the batch has none of its fields."""
        found = (self.raw(path) for path in where.paths if path in self._names)
        offsets = next(
            (one.offsets for one in found if one.offsets is not None), np.zeros(len(self) + 1, int)
        )
        return Part(where.path, self._canonical(where, int(offsets[-1])), offsets)

    def _canonical(self, where: Measurement, count: int) -> Canonical:
        return Canonical(where, partial(self._field, where.path, count), count)

    def _field(self, path: str, count: int, name: str) -> Column:
        found = self.raw(f"{path}.{name}") if f"{path}.{name}" in self._names else None
        return nulls(count) if found is None or len(found.values) != count else found

    def _source_paths(self, attribute: str) -> list[str]:
        return made_of(self.survey.description.source, attribute)[:1]

    def _check_series(self, kind: str, attribute: str) -> None:
        """Raise KeyError where the batch has nothing to make an attribute of."""
        arrays = [
            {f"{where.path}.{name}" for name in (where.time, ingredients(where, attribute)[0])}
            for where in self.survey.description.history
        ]
        if arrays and not any(needed <= self._names for needed in arrays):
            self._check(sorted(arrays[0]), f"{kind}.{attribute}")
        if kind == "light_curve":
            self._check(self._source_paths(attribute), f"{kind}.{attribute}")

    def _check(self, paths: Iterable[str], wanted: str) -> None:
        missing = [path for path in paths if path not in self._names]
        if missing:
            raise KeyError(
                f"{wanted}: no {', '.join(missing)} among the fields that are read here: "
                f"{', '.join(sorted(self._names))}"
            )


def _nullable(measured: Canonical, attribute: str) -> Column:
    values: Array = getattr(measured, attribute)
    return Column(values, missing(values)) if attribute == "band" else numbers(values)
