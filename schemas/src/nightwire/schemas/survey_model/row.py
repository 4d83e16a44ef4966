"""One row of an `AlertTable`, seen as an alert: its nested fields are read in their columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from nightwire.schemas.survey_model.attribute_names import (
    ALERT_ATTRIBUTES,
    LIGHT_CURVE_ATTRIBUTES,
    MEASUREMENT_ATTRIBUTES,
)
from nightwire.schemas.survey_model.column import Column
from nightwire.schemas.survey_model.description import Measurement, getter
from nightwire.schemas.survey_model.series import Series
from nightwire.schemas.survey_model.view import AlertView, Point

if TYPE_CHECKING:
    from nightwire.schemas.survey_model.table import AlertTable

ColumnReader = Callable[[int], Any]
"""Returns the value in a row; inside an array of records, of an item."""


class Leaf(NamedTuple):
    """A column on the way: the steps that are left to it.

    Attributes:
        steps: Names of fields, from the record that is looked at.
        depth: Lists around its values; None where its schema has no such field.
        column: Makes the column.
    """

    steps: tuple[str, ...]
    depth: int | None
    column: Callable[[], Column]


class Fields(dict[str, Any]):
    """A record's own fields, those that are read."""

    def __missing__(self, name: str) -> Any:
        """Raise a KeyError that lists the fields there are."""
        raise unread_field(name, self)


def unread_field(name: str, there: Iterable[str]) -> KeyError:
    """Return the error of asking for a field that is not there."""
    return KeyError(f"{name} is not among the fields that are read here: {', '.join(sorted(there))}")


def readers(leaves: Sequence[Leaf], *, inside: bool = False) -> Mapping[str, ColumnReader]:
    """Return what reads each field of a record.

    A record whose fields are all null is None; one whose fields are all lists is taken for a list
    of records.

    Args:
        leaves: The columns below the record.
        inside: Whether the record is an item of an array.
    """
    groups: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(leaf.steps[0], []).append(leaf._replace(steps=leaf.steps[1:]))
    return {name: _reader(group, inside) for name, group in groups.items()}


def _reader(leaves: Sequence[Leaf], inside: bool) -> ColumnReader:
    here = [leaf for leaf in leaves if not leaf.steps]
    if here:
        return _value(here[0], inside)
    depths = [leaf.depth for leaf in leaves if leaf.depth is not None]
    if depths and not inside and min(depths) > 0:
        return _array(leaves, next(leaf.column for leaf in leaves if leaf.depth))
    return _record(readers(leaves, inside=inside))


def _value(leaf: Leaf, inside: bool) -> ColumnReader:
    if leaf.depth is None:
        return lambda at: None
    if inside or leaf.depth == 0:
        return _item(leaf)
    return lambda at: leaf.column().row(at)


def _item(leaf: Leaf) -> ColumnReader:
    """Return what reads an item of a column, which is made when the first is read."""
    items: list[Any] | None = None

    def read(at: int) -> Any:
        nonlocal items
        if items is None:
            items = leaf.column().items
        return items[at]

    return read


def _record(fields: Mapping[str, ColumnReader]) -> ColumnReader:
    def read(at: int) -> dict[str, Any] | None:
        found = Fields([(name, reader(at)) for name, reader in fields.items()])
        return None if all(value is None for value in found.values()) else found

    return read


def _array(leaves: Sequence[Leaf], column: Callable[[], Column]) -> ColumnReader:
    fields = readers(leaves, inside=True)

    def read(row: int) -> list[dict[str, Any]] | None:
        span = column().span(row)
        return (
            None
            if span is None
            else [Fields([(name, get(at)) for name, get in fields.items()]) for at in span]
        )

    return read


def record_presence(columns: Sequence[Column]) -> Column:
    """Return where something is that has these *columns*: bool, never null.

    Where all of them are arrays, it is taken for an array itself: True for each item, *absent*
    where that is null.
    """
    arrays = [one for one in columns if one.offsets is not None]
    if len(arrays) == len(columns):
        first = arrays[0]
        count = len(first.values)
        return Column(np.ones(count, bool), np.zeros(count, bool), first.offsets, first.absent)
    there = np.logical_or.reduce([~one.null if one.absent is None else ~one.absent for one in columns])
    return Column(there, np.zeros(len(there), bool))


View = TypeVar("View", bound=type[Point])


def _of_row(name: str) -> property:
    return property(lambda self: self._table[name].items[self._row])


def _of_point(name: str) -> property:
    return property(lambda self: self._history.items(name)[self._at])


def looked_up(names: Iterable[str], lookup: Callable[[str], property]) -> Callable[[View], View]:
    """Return a class decorator: attributes are looked up in columns instead of computed."""

    def decorate(view: View) -> View:
        for name in names:
            setattr(view, name, lookup(name))
        return view

    return decorate


class Row(Mapping[str, Any]):
    """An alert's own fields, those that the batch has, as decoding would give them.

    Args:
        readers: By name, what reads a field in some row.
        row: Number of the row.
    """

    def __init__(self, readers: Mapping[str, ColumnReader], row: int) -> None:
        self._readers = readers
        self._row = row

    def __getitem__(self, name: str) -> Any:
        reader = self._readers.get(name)
        if reader is None:
            raise unread_field(name, self._readers)
        return reader(self._row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


@looked_up(ALERT_ATTRIBUTES, _of_row)
class RowView(AlertView):
    """An alert that is a row of a table; its attributes are looked up in the columns.

    Args:
        table: Has the columns.
        row: Number of the row.
    """

    def __init__(self, table: "AlertTable", row: int) -> None:
        super().__init__(Row(table.readers, row), table.survey)
        self._table = table
        self._row = row

    @cached_property
    def history(self) -> list[Point]:
        """As `AlertView.history`."""
        history = History(self, self._table, self._row)
        return [RowPoint(history, at) for at in range(len(history))]

    def light_curve(self) -> dict[str, "np.ndarray[Any, Any]"]:
        """As `AlertView.light_curve`."""
        columns = {name: self._table[f"light_curve.{name}"].cut(self._row) for name in LIGHT_CURVE_ATTRIBUTES}
        return {name: values.astype(str if name == "band" else float) for name, values in columns.items()}

    def healpix_at(self, order: int) -> int | None:
        """As `AlertView.healpix_at`."""
        found: int | None = self._table.healpix_at(order).items[self._row]
        return found

    def magnitudes(self, band: str) -> "np.ndarray[Any, Any]":
        """As `AlertView.magnitudes`."""
        return self._table.magnitudes(band).cut(self._row).copy()

    def colour(self, blue: str, red: str) -> float | None:
        """As `AlertView.colour`."""
        found: float | None = self._table.colour(blue, red).items[self._row]
        return found

    @cached_property
    def stamps(self) -> dict[str, bytes]:
        """As `AlertView.stamps`."""
        self._table.check_stamps()
        return self._unpacked_stamps()


class History:
    """The history of one row, attribute by attribute."""

    def __init__(self, view: AlertView, table: "AlertTable", row: int) -> None:
        self._view, self._table, self._row = view, table, row
        self._series: Series = table.series("history")
        self._begin, end = self._series.offsets[row : row + 2].tolist()
        self._count = int(end) - int(self._begin)
        self._items: dict[str, list[Any]] = {}
        self._arrays: dict[str, Any] = {}

    def __len__(self) -> int:
        return self._count

    def items(self, name: str) -> list[Any]:
        """Return an attribute of all points, None where there is nothing."""
        found = self._items.get(name)
        if found is None:
            found = self._items[name] = self._table[f"history.{name}"].row(self._row) or []
        return found

    def measurement(self, at: int) -> Measurement:
        """Return where a point's values lie."""
        array, _ = self._series.origin(self._begin + at, self._row)
        return next(one for one in self._table.survey.description.history if one.path == array)

    def record(self, at: int) -> Mapping[str, Any]:
        """Return a point's own fields."""
        array, item = self._series.origin(self._begin + at, self._row)
        if array not in self._arrays:
            self._arrays[array] = getter(array)(self._view)
        return self._arrays[array][item]  # type: ignore[no-any-return]


@looked_up(MEASUREMENT_ATTRIBUTES, _of_point)
class RowPoint(Point):
    """A point of the history of a row.

    Args:
        history: Of the row.
        at: Number of the point.
    """

    def __init__(self, history: History, at: int) -> None:
        self._history = history
        self._at = at

    @cached_property
    def _record(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self._history.record(self._at)
