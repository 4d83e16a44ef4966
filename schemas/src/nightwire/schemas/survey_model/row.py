"""One row of an `AlertTable`, seen as an alert."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from nightwire.schemas.survey_model.attribute_names import (
    ALERT_ATTRIBUTES,
    LIGHT_CURVE_ATTRIBUTES,
    MEASUREMENT_ATTRIBUTES,
)
from nightwire.schemas.survey_model.description import getter
from nightwire.schemas.survey_model.nested import ColumnReader, unread_field
from nightwire.schemas.survey_model.series import Series
from nightwire.schemas.survey_model.view import AlertView, Point

if TYPE_CHECKING:
    import numpy as np

    from nightwire.schemas.survey_model.table import AlertTable

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

    def __init__(self, view: RowView, table: "AlertTable", row: int) -> None:
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
