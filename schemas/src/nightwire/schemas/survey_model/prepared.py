"""The rows of a table as plain objects: values that are mentioned are there, others are looked up.

Looking a value up in a column takes ten times as long as a plain attribute.  Objects are made by
code that is written for their attributes, which takes half of the time of any call for each.
"""

import gc
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from types import new_class
from typing import TYPE_CHECKING, Any

from nightwire.schemas.survey_model.attribute_names import ALERT_ATTRIBUTES, MEASUREMENT_ATTRIBUTES
from nightwire.schemas.survey_model.row import History, Row, RowPoint, RowView

if TYPE_CHECKING:
    from nightwire.schemas.survey_model.table import AlertTable

MANY = 10_000
"""From so many objects on the garbage collector is told that they stay."""

HISTORY = "history"
Maker = Callable[..., list[Any]]


class PreparedRows:
    """The rows of a table, each an `AlertView` as `AlertTable.view` gives it.

    Values of rows and points can be replaced: who may do that must not share them.

    Args:
        table: The table.
        names: What is mentioned: canonical names, such as ``magnitude`` or ``history.flux``; others
            are passed over, and those that the table cannot make.
    """

    def __init__(self, table: "AlertTable", names: Iterable[str]) -> None:
        mentioned = set(names)
        self._table = table
        self._histories: dict[int, History] = {}
        points = [name for name in MEASUREMENT_ATTRIBUTES if f"{HISTORY}.{name}" in mentioned]
        values = self._values("", [name for name in ALERT_ATTRIBUTES if name in mentioned])
        series = self._values(f"{HISTORY}.", points)
        self._offsets: list[int] = table.series(HISTORY).offsets.tolist() if series else []
        with _collector_paused(len(table) + (self._offsets[-1] if series else 0)):
            self._points = self._made_points(series) if series else []
            self._rows = self._made_rows(values)

    def rows(self) -> Sequence[RowView]:
        """Return the rows; lists of points are new ones, for a filter may have sorted the last."""
        points = self._points
        if self._offsets:
            for row, (begin, end) in zip(self._rows, pairwise(self._offsets), strict=True):
                row.history = points[begin:end]
        return self._rows

    def place(self, index: int) -> tuple[History, int]:
        """Return the history in which a point lies, and its number there."""
        row = bisect_right(self._offsets, index) - 1
        history = self._histories.get(row)
        if history is None:
            history = self._histories[row] = History(self._table.view(row), self._table, row)
        return history, index - self._offsets[row]

    def _values(self, prefix: str, names: Iterable[str]) -> dict[str, list[Any]]:
        found = {}
        for name in names:
            try:
                found[name] = self._table[f"{prefix}{name}"].items
            except KeyError:  # whoever asks for it is told
                continue
        return found

    def _made_rows(self, values: Mapping[str, list[Any]]) -> list[Any]:
        slots = ("_row", *values, *([HISTORY] if self._offsets else []))
        known = {"_table": self._table, "_survey": self._table.survey, "__slots__": slots}
        kind = new_class("PreparedRow", (PreparedRow,), exec_body=lambda names: names.update(known))
        return _maker(("_row", *values))(object.__new__, kind, range(len(self._table)), *values.values())

    def _made_points(self, values: Mapping[str, list[Any]]) -> list[Any]:
        known = {"_prepared": self, "__slots__": ("_index", *values)}
        kind = new_class("PreparedPoint", (PreparedPoint,), exec_body=lambda names: names.update(known))
        return _maker(("_index", *values))(object.__new__, kind, range(self._offsets[-1]), *values.values())


class PreparedRow(RowView):
    """A row whose mentioned values are attributes of its own."""

    @property
    def _record(self) -> Mapping[str, Any]:  # type: ignore[override]
        return Row(self._table.readers, self._row)

    @property
    def _measurement(self) -> Any:  # type: ignore[override]
        return self._survey.description.source

    @property
    def stamps(self) -> dict[str, bytes]:
        """As `AlertView.stamps`."""
        return dict(super().stamps)


class PreparedPoint(RowPoint):
    """A point whose mentioned values are attributes of its own."""

    _prepared: PreparedRows
    _index: int

    @property
    def _history(self) -> History:  # type: ignore[override]
        return self._prepared.place(self._index)[0]

    @property
    def _at(self) -> int:  # type: ignore[override]
        return self._prepared.place(self._index)[1]


@contextmanager
def _collector_paused(objects: int) -> Iterator[None]:
    """Make so many *objects* without the garbage collector, which would go through them again and
    again; many are left out by it later, too.
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
def _maker(names: tuple[str, ...]) -> Maker:
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
