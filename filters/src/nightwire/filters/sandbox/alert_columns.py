"""Many alerts as a filter over columns sees them, and what it says of them."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nightwire.filters.language import FilterError, rank_of
from nightwire.filters.sandbox.protocol import PASSED, REJECTED
from nightwire.schemas import AlertTable, Column
from nightwire.schemas.survey_model import NOT_MATCHED, MatchName

Array = np.ndarray[Any, Any]

EXACT = 1 << 53
"""Whole numbers beyond are rounded as float64."""


class AlertColumns:
    """The columns of some alerts.

    Canonical ones are attributes (``alerts.magnitude``), the survey's own are asked for by their
    dotted paths (``alerts["diaSource.psfFlux"]``).  Each is a new array, one value for each alert:
    float64, NaN where there is none; int64 where none is missing, else float64, or longdouble where
    float64 would round some, such as Gaia's ids; bool; texts, None where there is none.  Of lists
    (``alerts["prvDiaSources.psfFlux"]``) it is `RaggedColumn`.

    Args:
        table: Has the columns.
    """

    def __init__(self, table: AlertTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        return values_of(self._table[name])

    @property
    def history(self) -> "PointColumns":
        """The earlier measurements of all alerts, by time."""
        return PointColumns(self._table, "history")

    @property
    def light_curve(self) -> "PointColumns":
        """The same with the alert's own measurement."""
        return PointColumns(self._table, "light_curve")

    def match(self, catalogue: str, radius: float) -> "MatchColumns":
        """Return the nearest objects of a catalogue within a radius [arcsec], as columns."""
        return MatchColumns(self._table, MatchName.of(catalogue, radius))

    def in_moc(self, name: str) -> Array:
        """Return which alerts lie within a map of the sky: bool."""
        named = MatchName.of_map(name)
        return _added(self._table, named, str(named))  # type: ignore[no-any-return]

    def frame(self, *names: str) -> Any:
        """Return columns as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame({name: series(self[name]) for name in names})


class MatchColumns:
    """The nearest objects of a catalogue, a column of which is an array as those of alerts are.

    Args:
        table: Has the columns.
        name: Of the match.
    """

    def __init__(self, table: AlertTable, name: MatchName) -> None:
        self._table, self._name = table, name

    def __getitem__(self, column: str) -> Any:
        return _added(self._table, self._name, f"{self._name}.{column}")


def _added(table: AlertTable, name: MatchName, column: str) -> Any:
    try:
        return values_of(table[column])
    except KeyError:
        raise KeyError(f"{name.call} has no such column, or {NOT_MATCHED}") from None


class PointColumns:
    """The measurements of many alerts, an attribute of which is a `RaggedColumn`.

    Args:
        table: Has the columns.
        kind: ``history`` or ``light_curve``.
    """

    def __init__(self, table: AlertTable, kind: str) -> None:
        self._table, self._kind = table, kind

    def __getattr__(self, name: str) -> "RaggedColumn":
        if name.startswith("_"):
            raise AttributeError(name)
        found: RaggedColumn = values_of(self._table[f"{self._kind}.{name}"])
        return found


class RaggedColumn:
    """A list of values for each alert.

    Attributes:
        values: All values, one alert's after the other's.
        offsets: Where each alert's begin, shape (n + 1,).
    """

    def __init__(self, values: Array, offsets: Array) -> None:
        self.values, self.offsets = values, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, alert: int) -> Array:
        begin, end = self.offsets[alert : alert + 2]
        found: Array = self.values[begin:end]
        return found

    def __iter__(self) -> Iterator[Array]:
        return (self[alert] for alert in range(len(self)))

    @property
    def counts(self) -> Array:
        """How many values each alert has."""
        found: Array = np.diff(self.offsets)
        return found

    @property
    def alert(self) -> Array:
        """The number of the alert of each value."""
        found: Array = np.repeat(np.arange(len(self)), self.counts)
        return found

    def min(self) -> Array:
        """Return the smallest number of each alert, NaN where there is none."""
        return self._reduced(np.fmin, math.nan)

    def max(self) -> Array:
        """Return the largest number of each alert, NaN where there is none."""
        return self._reduced(np.fmax, math.nan)

    def sum(self) -> Array:
        """Return the sum of each alert's numbers; what is missing counts as nothing."""
        return np.bincount(self.alert, np.nan_to_num(self.values).astype(np.float64), len(self))

    def mean(self) -> Array:
        """Return the mean of each alert's numbers, NaN where there is none."""
        known = np.bincount(self.alert, ~np.isnan(self.values), len(self))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Array = self.sum() / known
        return found

    def _reduced(self, how: np.ufunc, empty: float) -> Array:
        found = np.full(len(self), empty)
        there = np.flatnonzero(self.counts)
        if len(there):
            found[there] = how.reduceat(self.values, self.offsets[:-1][there])
        return found


def values_of(column: Column) -> Any:
    """Return a column as a filter sees it."""
    if column.offsets is not None:
        return RaggedColumn(_flat(column), column.offsets.copy())
    return _flat(column)


def _flat(column: Column) -> Array:
    values, null = column.values, column.null
    if values.dtype == np.int64 and null.any():
        rounded = (values > EXACT) | (values < -EXACT)
        values = values.astype(np.longdouble if (rounded & ~null).any() else np.float64)
    if values.dtype.kind == "f":
        return np.where(null, np.nan, values)
    found: Array = values.astype(object) if null.any() else values.copy()
    if found.dtype == object:
        found[null] = None
    return found


def series(values: Any) -> Any:
    """Return a column as a pandas Series; of lists it holds arrays."""
    import pandas as pd

    if isinstance(values, RaggedColumn):
        cells = np.empty(len(values), object)
        cells[:] = list(values) if len(values) else []
        return pd.Series(cells)
    return pd.Series(values)


def verdicts_of(result: Any, count: int) -> tuple[bytes, list[float]]:
    """Return the state of each of so many alerts, and the ranks of those that pass.

    Args:
        result: What the filter returned: truth values, or numbers by which alerts rank; zero, NaN
            and what is missing do not pass.
        count: How many alerts it was given.

    Raises:
        FilterError: It is not one value for each.
    """
    values = np.ma.filled(result, 0) if np.ma.isMaskedArray(result) else np.asarray(result)
    if values.shape != (count,):
        wanted = "one truth value or rank for each is wanted"
        raise FilterError(f"returned an array of shape {values.shape} for {count} alerts: {wanted}")
    if values.dtype == object:
        return verdicts_of_each([0 if _is_missing(one) else one for one in values.tolist()])
    if values.dtype == bool:
        passed, ranks = values, np.full(count, math.nan)
    else:
        ranks = values.astype(float)
        passed = (ranks != 0) & ~np.isnan(ranks)
    return np.where(passed, PASSED, REJECTED).astype(np.uint8).tobytes(), ranks[passed].tolist()


def verdicts_of_each(values: Sequence[Any]) -> tuple[bytes, list[float]]:
    """Return the same of values of any type, as a filter of one alert gives them."""
    passing = [bool(one) for one in values]
    ranks = [rank_of(one) for one, passes in zip(values, passing, strict=True) if passes]
    return bytes(PASSED if passes else REJECTED for passes in passing), ranks


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither true nor false
        return True
