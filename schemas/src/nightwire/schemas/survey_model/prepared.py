"""The rows of a table as plain objects: values that are mentioned are there, others are looked up.

Looking a value up in a column takes ten times as long as a plain attribute.  Objects are made by
code that is written for their attributes, which takes half of the time of any call for each.
"""

import gc
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import pairwise, repeat
from types import new_class
from typing import TYPE_CHECKING, Any

from nightwire.schemas.survey_model.attribute_names import ALERT_ATTRIBUTES, MEASUREMENT_ATTRIBUTES
from nightwire.schemas.survey_model.column import makes_columns
from nightwire.schemas.survey_model.description import Measurement
from nightwire.schemas.survey_model.row import History, Row, RowPoint, RowView
from nightwire.schemas.survey_model.view import AlertView, Point

if TYPE_CHECKING:
    from nightwire.schemas.survey_model.table import AlertTable
    from nightwire.schemas.survey_model.view import Survey

FEW = 0.1
"""Share of the rows whose points are made one by one; when more are asked for, all are made."""

Maker = Callable[..., list[Any]]


class PreparedRows:
    """The rows of a table, each an `AlertView` as `AlertTable.view` gives it.

    Values of rows and points can be replaced: who may do that must not share them.  To be closed:
    rows and table refer to one another, and the garbage collector is kept from them.

    Args:
        table: The table; it is closed, too.
        names: What is mentioned: canonical names, such as ``magnitude`` or ``history.flux``; others
            are passed over, and those that the table cannot make.
    """

    def __init__(self, table: "AlertTable", names: Iterable[str]) -> None:
        mentioned = set(names)
        self.table, self.history = table, PreparedHistory(table, mentioned)
        values = values_of(table, [name for name in ALERT_ATTRIBUTES if name in mentioned])
        slots = ("_batch", "_row", "_list", *values)
        columns = (repeat(self), range(len(table)), repeat(None), *values.values())
        with collector_paused(len(table)):
            self._rows = maker(slots)(object.__new__, kind_of(PreparedRow, slots), *columns)

    def close(self) -> None:
        """Let everything go; rows that somebody keeps have no values but those that are set."""
        self._rows.clear()
        self.history.close()
        self.table.close()

    def rows(self, *, with_history: bool = True) -> Sequence["PreparedRow"]:
        """Return the rows; lists of points are new ones, for a filter may have sorted the last.

        Args:
            with_history: Whether these are asked for, so that they may be made at once.
        """
        self.history.renew_lists(self._rows if with_history else ())
        return self._rows


class PreparedHistory:
    """The points of all rows, made when they are asked for.

    Args:
        table: The table.
        mentioned: Names of which those that begin with ``history.`` matter.
        whole: Gives the whole alert of a row, with which points have all that it says of them;
            None: they have what the table says.
    """

    def __init__(
        self, table: "AlertTable", mentioned: Collection[str], whole: Callable[[int], AlertView] | None = None
    ) -> None:
        names = [f"history.{name}" for name in MEASUREMENT_ATTRIBUTES]
        # times are read in any case, for the order; who mentions them has them of the alert, too
        unasked = () if "mjd_tai" in mentioned else ("history.mjd_tai",)
        self._table, self._names = table, [one for one in names if one in mentioned and one not in unasked]
        self._alert, self._base = whole or table.view, WholePoint if whole else PreparedPoint
        self._points: list[list[Any] | None] = [None] * len(table)
        self._singly, self._all_made = 0, False
        self._given: list[PreparedRow] = []
        self._histories: dict[int, History] = {}

    def close(self) -> None:
        """Let all points go."""
        for kept in (self._points, self._given, self._histories):
            kept.clear()

    def list_for(self, row: "PreparedRow", number: int) -> list[Any]:
        """Return the points of row *number*, in a list of its own."""
        self._given.append(row)
        return self.points_of(number)

    def points_of(self, number: int) -> list[Any]:
        """Return the points of a row, in a new list."""
        found = self._points[number]
        return list(self._made(number) if found is None else found)

    def renew_lists(self, rows: Sequence["PreparedRow"]) -> None:
        """Give new lists to *rows* where all points are made; else let them ask."""
        for row in self._given:
            row.renew_list(None)
        self._given.clear()
        if self._all_made:
            for row, points in zip(rows, self._points, strict=False):
                row.renew_list(points)
            self._given += rows

    def place(self, index: int) -> tuple[History, int]:
        """Return the history in which a point lies, and its number there."""
        row = bisect_right(self._offsets, index) - 1
        history = self._histories.get(row)
        if history is None:
            history = self._histories[row] = History(self._alert(row), self._table, row)
        return history, index - self._offsets[row]

    def _made(self, row: int) -> list[Any]:
        """Make the points of a row, or of all rows."""
        if self._singly < FEW * len(self._points):
            self._singly += 1
            found = self._points[row] = self._between(*self._offsets[row : row + 2])
            return found
        self._make_all()
        return self._points[row] or []

    @makes_columns
    def _make_all(self) -> None:
        with collector_paused(self._offsets[-1]):
            whole = self._between(0, self._offsets[-1])
            self._points = [whole[begin:end] for begin, end in pairwise(self._offsets)]
        self._all_made = True

    def _between(self, begin: int, end: int) -> list[Any]:
        columns = (one[begin:end] for one in self._values.values())
        return maker(self._slots)(object.__new__, self._kind, repeat(self), range(begin, end), *columns)

    @cached_property
    @makes_columns
    def _offsets(self) -> list[int]:
        found: list[int] = self._table.series("history").offsets.tolist()
        return found

    @cached_property
    @makes_columns
    def _values(self) -> dict[str, list[Any]]:
        return values_of(self._table, self._names)

    @cached_property
    def _slots(self) -> tuple[str, ...]:
        return ("_prepared", "_index", *(name.removeprefix("history.") for name in self._values))

    @cached_property
    def _kind(self) -> type:
        return kind_of(self._base, self._slots)


class PreparedRow(RowView):
    """A row whose mentioned values are attributes of its own."""

    _batch: PreparedRows
    _list: list[Any] | None

    @property
    def _table(self) -> "AlertTable":  # type: ignore[override]
        return self._batch.table

    @property
    def _survey(self) -> "Survey":  # type: ignore[override]
        return self._batch.table.survey

    @property
    def _record(self) -> Mapping[str, Any]:  # type: ignore[override]
        return Row(self._table.readers, self._row)

    @property
    def _measurement(self) -> Any:  # type: ignore[override]
        return self._survey.description.source

    @property
    def history(self) -> list[Point]:
        """As `AlertView.history`."""
        if self._list is None:
            self._list = self._batch.history.list_for(self, self._row)
        return self._list

    def renew_list(self, points: list[Any] | None) -> None:
        """Have a new list of *points*; None: none yet."""
        self._list = points and points[:]

    @property
    def stamps(self) -> dict[str, bytes]:
        """As `AlertView.stamps`."""
        return dict(super().stamps)


class PreparedPoint(RowPoint):
    """A point whose mentioned values are attributes of its own."""

    _prepared: PreparedHistory
    _index: int

    @property
    def _history(self) -> History:  # type: ignore[override]
        return self._prepared.place(self._index)[0]

    @property
    def _at(self) -> int:  # type: ignore[override]
        return self._prepared.place(self._index)[1]


class WholePoint(Point):
    """The same where all is there that the survey says of it."""

    _prepared: PreparedHistory
    _index: int

    @property
    def _record(self) -> Mapping[str, Any]:  # type: ignore[override]
        history, at = self._prepared.place(self._index)
        return history.record(at)

    @property
    def _source(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self._record

    @property
    def _measurement(self) -> Measurement:  # type: ignore[override]
        history, at = self._prepared.place(self._index)
        return history.measurement(at)


def values_of(table: "AlertTable", names: Iterable[str]) -> dict[str, list[Any]]:
    """Return the columns of a table that it can make, as Python's values."""
    found = {}
    for name in names:
        try:
            found[name] = table[name].items
        except KeyError:  # whoever asks for it is told
            continue
    return found


@lru_cache(maxsize=256)
def kind_of(base: type, slots: tuple[str, ...]) -> type:
    """Return a subclass of *base* whose instances have *slots*."""
    return new_class(base.__name__, (base,), exec_body=lambda names: names.update(__slots__=slots))


MANY = 2_000
"""From so many objects on the garbage collector is kept from them."""


@contextmanager
def collector_paused(objects: int) -> Iterator[None]:
    """Make so many *objects* that stay without the garbage collector, which would go through them
    again and again; it leaves them out later, too.
    """
    if objects < MANY:
        yield
        return
    gc.collect()  # what is garbage now would stay for good
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@lru_cache(maxsize=256)
def maker(names: tuple[str, ...]) -> Maker:
    """Return a function of ``object.__new__``, a class, and a list of values for each of *names*,
    that returns the objects.
    """
    values, one = [f"v{at}" for at in range(len(names))], "one"
    lines = [
        f"def make(new, kind, {', '.join(f'c{at}' for at in range(len(names)))}):",
        "    made = []",
        "    add = made.append",
        f"    for {', '.join(values)}, in zip({', '.join(f'c{at}' for at in range(len(names)))}):",
        f"        {one} = new(kind)",
        *(f"        {one}.{name} = {value}" for name, value in zip(names, values, strict=True)),
        f"        add({one})",
        "    return made",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)  # noqa: S102 - our own names alone
    made: Maker = namespace["make"]
    return made
