"""Many alerts as columns, by canonical names or the survey's own; any row as one alert."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nightwire.schemas.survey_model.attribute_columns import Canonical
from nightwire.schemas.survey_model.attribute_names import (
    ID_ATTRIBUTES,
    MEASUREMENT_ATTRIBUTES,
    POSITION_ATTRIBUTES,
    PRESENCE_MARK,
    SERIES_ATTRIBUTES,
    required_fields,
    source_fields,
    source_paths,
)
from nightwire.schemas.survey_model.column import (
    Column,
    column,
    depth,
    is_none,
    makes_columns,
    nulls,
    numbers,
)
from nightwire.schemas.survey_model.description import Measurement
from nightwire.schemas.survey_model.row import ColumnReader, Leaf, RowView, readers, record_presence
from nightwire.schemas.survey_model.series import Part, Series, last

if TYPE_CHECKING:
    from nightwire.schemas.survey_model.view import Survey


class AlertTable:
    """The columns of many alerts, by canonical names or dotted paths; each made when asked for.

    Canonical columns have the values of `AlertView`, to the bit: ``id``, ``object_id``,
    ``solar_system_id``, ``visit``, ``ra``, ``dec``, ``galactic_longitude``, ``galactic_latitude``,
    ``healpix``, ``mjd_tai``, ``band``, ``flux``, ``flux_error``, ``snr``, ``magnitude``; and as
    arrays ``history.flux`` (or another attribute of a measurement) in the order of
    `AlertView.history`, null where that has None, and ``light_curve.flux``, with this measurement
    itself, NaN or empty text where there is nothing.

    ``diaObject?`` tells where a record is there: bool; for an array of records, True for each item.

    A canonical column needs the fields that `fields` names.  Where some of them are not in the
    batch, because the schema has none, it is made of the rest, as `AlertView` does.

    Args:
        batch: One row per alert, columns named by dotted paths, as `AlertDecoder.columns` gives it.
        survey: Knows where canonical values lie.
    """

    def __init__(self, batch: "pa.RecordBatch", survey: "Survey") -> None:
        self.survey = survey
        self._batch = batch
        self._names = frozenset(batch.schema.names)
        self._made: dict[Hashable, Column] = {}

    def close(self) -> None:
        """Let all columns go: they refer to the table.  It cannot be used any more."""
        vars(self).clear()

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __getitem__(self, name: str) -> Column:
        """Return a column.

        Raises:
            KeyError: The batch has not the fields that it is made of; names them.
        """
        found = self._made.get(name)
        if found is None:
            found = self._make(name, partial(self._column, name))
        return found

    def healpix_at(self, order: int) -> Column:
        """Return `AlertView.healpix_at` of each alert: int64, null where there is no position.

        Raises:
            KeyError: The batch has no positions.
            ValueError: *order* is not from 0 to 29.
        """
        self._check(self._source_paths("healpix"), "healpix")
        return self._cached(("healpix", order), lambda: self._source.healpix(order))

    def magnitudes(self, band: str) -> Column:
        """Return `AlertView.magnitudes` of each alert: arrays.

        Raises:
            KeyError: The batch has no light curves.
        """
        self._check_series("light_curve", "magnitude")
        return self._cached(("magnitudes", band), lambda: self._light_curve.magnitudes(band))

    def colour(self, blue: str, red: str) -> Column:
        """Return `AlertView.colour` of each alert. [mag]

        Raises:
            KeyError: The batch has no light curves.
        """
        one, other = self.magnitudes(blue), self.magnitudes(red)
        return self._cached(("colour", blue, red), lambda: numbers(last(one) - last(other)))

    def view(self, row: int) -> "RowView":
        """Return one alert as filters see it: an `AlertView` whose values are found when asked for.

        What is not in the batch raises KeyError, which names it.
        """
        return RowView(self, row)

    @staticmethod
    def fields(names: Iterable[str], survey: "Survey", schema: Mapping[str, Any] | None = None) -> list[str]:
        """Return the dotted paths that *names* are made of; those of the ids and the visit always.

        Args:
            names: Canonical names, dotted paths, records with a question mark (which need
                *schema*), or what `AlertView` calls ``history``, ``light_curve``, ``colour``,
                ``magnitudes``, ``healpix_at`` and ``stamps``.
            survey: Of the alerts.
            schema: Of the alerts: paths that it does not have are left out; None = all.
        """
        return required_fields(names, survey, schema)

    def raw(self, path: str) -> Column:
        """Return the column at a dotted path; all null where the schema has none.

        Raises:
            KeyError: It is not in the batch.
        """
        self._check([path], path)
        return self._cached(("field", path), lambda: column(self._batch.column(path)))

    def series(self, kind: str) -> Series:
        """Return the measurements of ``history`` or ``light_curve``.

        Raises:
            KeyError: The batch has none.
        """
        self._check_series(kind, "mjd_tai")
        return self._history if kind == "history" else self._light_curve

    @cached_property
    @makes_columns
    def readers(self) -> Mapping[str, ColumnReader]:
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

    def _cached(self, key: Hashable, make: Callable[[], Column]) -> Column:
        found = self._made.get(key)
        if found is None:
            found = self._make(key, make)
        return found

    @makes_columns
    def _make(self, key: Hashable, make: Callable[[], Column]) -> Column:
        found = self._made[key] = make()
        return found

    def _column(self, name: str) -> Column:
        kind, _, attribute = name.partition(".")
        if name in ID_ATTRIBUTES:
            return self._ids(name)
        if name in MEASUREMENT_ATTRIBUTES or name in POSITION_ATTRIBUTES:
            self._check(self._source_paths(name), name)
            return (
                self._source.position(name) if name in POSITION_ATTRIBUTES else _nullable(self._source, name)
            )
        if kind in SERIES_ATTRIBUTES and attribute in MEASUREMENT_ATTRIBUTES:
            return self._series_column(kind, attribute)
        return (
            self._presence(name.removesuffix(PRESENCE_MARK))
            if name.endswith(PRESENCE_MARK)
            else self.raw(name)
        )

    def _presence(self, path: str) -> Column:
        below = sorted(one for one in self._names if one == path or one.startswith(f"{path}."))
        if not below:
            self._check([path], path)
        known = [one for one in below if self._batch.schema.field(one).type != pa.null()]
        return record_presence([self.raw(one) for one in known or below])

    def _ids(self, name: str) -> Column:
        ids = self.survey.description.ids
        paths = getattr(ids, ID_ATTRIBUTES[name])
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
            null = is_none(values) if attribute == "band" else np.isnan(values)
            return series.column(values, null)
        if attribute == "band":
            values = np.where(is_none(values), "", values)
        return series.column(values, np.zeros(len(values), bool))

    @cached_property
    def _source(self) -> Canonical:
        return self._canonical(self.survey.description.source, len(self))

    @cached_property
    @makes_columns
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
        return Canonical(where, partial(self._field, where, count), count)

    def _field(self, where: Measurement, count: int, name: str) -> Column:
        found = self.raw(where.at(name)) if where.at(name) in self._names else None
        return nulls(count) if found is None or len(found.values) != count else found

    def _source_paths(self, attribute: str) -> list[str]:
        return source_paths(self.survey.description.source, attribute)[:1]

    def _check_series(self, kind: str, attribute: str) -> None:
        """Raise KeyError where the batch has nothing to make an attribute of."""
        arrays = [
            {where.at(name) for name in (where.time, source_fields(where, attribute)[0])}
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
    values = measured.canonical(attribute)
    return Column(values, is_none(values)) if attribute == "band" else numbers(values)


def first_of(columns: Sequence[Column], absent: Sequence[Any], count: int) -> Column:
    """Return for each alert the first value that is neither null nor one of *absent*."""
    columns = [one for one in columns if one.values.dtype != object or not one.null.all()]
    if not columns:
        return nulls(count)
    whole = all(one.values.dtype == np.int64 for one in columns)
    values = np.zeros(count, np.int64) if whole else np.full(count, None, object)
    missing = np.ones(count, bool)
    for one in columns:
        usable = missing & ~one.null
        for value in absent:
            usable &= one.values != value
        values[usable] = one.values[usable]
        missing &= ~usable
    return Column(values, missing)


def visits(ids: Column, divisor: int) -> Column:
    """Return the visits that *ids* stand for."""
    whole = np.where(ids.null, 0, ids.values).astype(np.int64)
    return Column(whole // divisor, ids.null)
