"""What filters read of alerts, counted by kind: how much of it is no ordinary value.

An input is a value that an alert has where a filter looks: of a history, each point's.  A list that
a filter goes over is one as well: it may be empty.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from filters.tests.helpers.random_alerts import USUAL_TEXTS
from nightwire.filters.language import Program
from nightwire.schemas import AlertTable, Column

ODD = ("null", "NaN", "infinite", "empty list", "overflow", "odd text")
"""The kinds of values that are no ordinary ones."""

OVERFLOWS = 1 << 62
"""Whole numbers from here on do not fit 64 bits when they are doubled."""


def kind(value: Any) -> str:
    """Return what kind of a value it is: one of `ODD`, or ``usual``."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "usual" if value in USUAL_TEXTS else "odd text"
    if isinstance(value, list):
        return "usual" if value else "empty list"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinite"
    return "overflow" if isinstance(value, int) and abs(value) >= OVERFLOWS else "usual"


class Inputs:
    """Counts what programs read of the alerts of one table."""

    def __init__(self, table: AlertTable) -> None:
        self._table = table
        self._counted = cache(self._count)

    def of(self, program: Program) -> Counter[str]:
        """Return how many values of each kind a program reads, each once."""
        found: Counter[str] = Counter()
        for what in dict.fromkeys(_reads(program)):
            found.update(self._counted(*what))
        return found

    def _count(self, operation: str, *names: str) -> Counter[str]:
        try:
            return Counter(map(kind, COUNTED[operation](self._table, *names)))
        except KeyError:  # no alert has such a field
            return Counter()


def odd_share(inputs: Counter[str]) -> float:
    """Return the share of values that are no ordinary ones."""
    return sum(inputs[one] for one in ODD) / inputs.total()


def _reads(program: Program) -> Iterator[tuple[str, ...]]:
    """Yield what each node of a program reads."""
    nodes = program.nodes
    for node in nodes:
        operation = "field" if node[0] in ("lenient", "sql.field") else node[0]
        if operation == "item":
            root, name = nodes[node[1]]
            yield ("field", f"{name}.{node[2]}") if root == "points" else ("magnitude", name)
        elif operation in COUNTED:
            yield (operation, *node[1:])


def _of_field(table: AlertTable, path: str) -> Iterable[Any]:
    return table[path].items


def _of_record(table: AlertTable, path: str) -> Iterable[Any]:
    return [there or None for there in table[f"{path}?"].items]


def _of_list(table: AlertTable, name: str) -> Iterable[Any]:
    canonical = name in ("history", "light_curve")
    return _lists(table, table[f"{name}.mjd_tai" if canonical else f"{name}?"])


def _lists(table: AlertTable, column: Column) -> Iterable[Any]:
    return map(column.row, range(len(table)))


COUNTED: dict[str, Any] = {
    "field": _of_field,
    "has": _of_record,
    "points": _of_list,
    "magnitudes": lambda table, band: _lists(table, table.magnitudes(band)),
    "magnitude": lambda table, band: table.magnitudes(band).items,
    "colour": lambda table, blue, red: table.colour(blue, red).items,
    "healpix_at": lambda table, order: table.healpix_at(order).items,
}
"""By what a program reads: the values that alerts have there."""
