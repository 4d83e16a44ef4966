"""Which records a filtered channel carries: its relay and its receivers judge alike."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from nightwire.filters.language import FilterError, compile_sql, evaluate
from nightwire.schemas import AlertTable, Columns, Decoded, RegistryAwayError, SchemaError, survey


class AlertColumns(Protocol):
    """What we need of an `AlertDecoder`."""

    def decode(self, value: bytes) -> Decoded:
        """Return the alert in *value*."""

    def columns(self, values: Sequence[bytes], fields: Sequence[str], *, missing_ok: bool = False) -> Columns:
        """Return *fields* of those of *values* that can be read."""


Judge = Callable[[Sequence[bytes | None]], list[bool]]
"""Tells which of some records' values a channel carries."""


class ConditionError(FilterError):
    """A channel's condition cannot be judged; the message says why."""


class SqlJudge:
    """Judges alerts by an SQL condition.

    What cannot be decoded is carried, for whoever receives it counts it; an alert about which the
    condition fails (a division by zero, say) is not.

    Args:
        condition: What stands behind WHERE.
        survey_name: Whose alerts.
        decoder: Reads them.

    Raises:
        FilterError: It is no condition; says where and why.
    """

    def __init__(self, condition: str, survey_name: str, decoder: AlertColumns) -> None:
        if not survey_name:
            raise ConditionError("a condition needs its survey: the topic alerts.SURVEY names one")
        self._survey, self._decoder = survey(survey_name), decoder
        self._program = compile_sql(condition, self._survey)
        self._paths: dict[str, None] = {}
        self._seen: set[bytes] = set()

    def __call__(self, values: Sequence[bytes | None]) -> list[bool]:
        """Return whether each of *values* is carried.

        Raises:
            RegistryAwayError: A schema cannot be had just now.
        """
        whole = [value or b"" for value in values]
        carried = [True] * len(whole)
        for value in whole:
            self._learn(value)
        found = self._decoder.columns(whole, list(self._paths), missing_ok=True)
        _raise_away(found.faults)
        if found.rows:
            verdicts = evaluate(self._program, AlertTable(found.batch, self._survey))
            unsure = set(verdicts.needs_python.tolist())
            for row, at in enumerate(found.rows):
                carried[at] = bool(verdicts.passed[row]) or row in unsure
        return carried

    def _learn(self, value: bytes) -> None:
        """Add the paths that the condition reads in alerts of the schema of *value*."""
        if value[:5] in self._seen:
            return
        try:
            schema: Mapping[str, Any] = self._decoder.decode(value).schema
        except RegistryAwayError:
            raise
        except SchemaError:
            return
        self._seen.add(value[:5])
        for fields in (None, schema):
            self._paths |= dict.fromkeys(AlertTable.fields(self._program.names, self._survey, fields))


def _raise_away(faults: Mapping[int, Exception]) -> None:
    for error in faults.values():
        if isinstance(error, RegistryAwayError):
            raise error
