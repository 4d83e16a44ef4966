"""Judging a batch by one filter, inside its owner's process."""

import json
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from nightwire.filters.language import FILENAME, FilterError, compile_filter, fault_text, rank_of
from nightwire.filters.sandbox._answer import PASSED, REJECTED, Verdicts
from nightwire.filters.sandbox._rows import Rows
from nightwire.filters.sandbox._warm import advice

Predicate = Callable[[Any], Any]


class TooLate(BaseException):
    """Raised in a filter that has to stop.  No `Exception`, so that its own ``except`` lets it through."""


class Bench:
    """Judges batches; keeps filters' functions from batch to batch.

    Args:
        progress: Its first item is the row being judged, for who looks on from outside.
    """

    def __init__(self, progress: "memoryview[int]") -> None:
        self.judging = False
        self._progress = progress
        self._functions: dict[str, tuple[str, Predicate]] = {}

    def judge(
        self, rows: Rows, key: str, source: str, entry: str, whole: bool, transform: str = ""
    ) -> Verdicts:
        """Return the verdicts of the filter *key* on all *rows*; on fewer, where it was stopped."""
        verdicts = Verdicts()
        self._progress[0] = 0
        try:
            self.judging = True
            function = self._function(key, source, entry)
            made = None if not transform else function.__globals__[transform]
            self._each(function, made, rows.views(whole), rows.count, source, verdicts)
            self.judging = False
        except FilterError as error:
            self.judging = False
            for _ in range(rows.count):
                verdicts.fault(str(error))
        except TooLate as error:
            self.judging = False
            verdicts.stop(rows.count, fault_text(error, source).replace(f"{TooLate.__module__}.", ""))
        return verdicts

    def _function(self, key: str, source: str, entry: str) -> Predicate:
        known = self._functions.get(key)
        if known is None or known[0] != source:
            known = self._functions[key] = (source, _compiled(source, entry))
        return known[1]

    def _each(
        self, function: Any, transform: Any, view: Any, count: int, source: str, verdicts: Verdicts
    ) -> None:
        progress, states, ranks, said = self._progress, verdicts.states, verdicts.ranks, Faults(source)
        for row in range(count):
            progress[0] = row
            try:
                if result := function(alert := view(row)):
                    if transform is not None:
                        verdicts.add(json.dumps(transform(alert), default=plain))
                    ranks.append(rank_of(result))
                    states.append(PASSED)
                else:
                    states.append(REJECTED)
            except TooLate:
                raise
            except BaseException as error:  # noqa: BLE001 - a filter's SystemExit is its fault, not ours
                verdicts.fault(said.text(error))


MAKING = frozenset(
    {
        *(("nightwire.schemas._column", name) for name in ("column", "items", "_spans")),
        *(("nightwire.schemas._table", name) for name in ("_column", "<lambda>", "readers")),
    }
)
"""Module and name of what runs while a column of an alert table is made, and never once it is."""


def is_own(frame: FrameType | None) -> bool:
    """Return whether what runs in *frame* is a filter's own doing; else a column is being made for it."""
    while frame is not None and frame.f_code.co_filename != FILENAME:
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in MAKING:
            return False
        frame = frame.f_back
    return frame is not None


def plain(value: Any) -> Any:
    """Return a value of NumPy's as one that JSON can hold.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"transform gave a {type(value).__name__}, which cannot be added to an alert")


class Faults:
    """Texts of what a filter raised, one for each kind and line: to make one takes longer than to judge.

    Args:
        source: The filter's.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._texts: dict[tuple[type, int], str] = {}

    def text(self, error: BaseException) -> str:
        """Return what to say of *error*: what was said of the first of its kind on that line."""
        where = type(error), _line(error.__traceback__)
        if where not in self._texts:
            self._texts[where] = fault_text(error, self._source)
        return self._texts[where]


def _line(trace: TracebackType | None) -> int:
    found = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _compiled(source: str, entry: str) -> Predicate:
    """Return the function *entry* of *source*, whose top level may do anything.

    Raises:
        FilterError: It cannot be had; where a module is missing, with what there is.
    """
    try:
        return compile_filter(source, entry)
    except FilterError as error:
        cause = error.__cause__
        if isinstance(cause, ImportError) and cause.name:
            raise FilterError(f"{error}; {advice(cause.name)}") from error
        raise
    except TooLate:
        raise
    except BaseException as error:
        raise FilterError(fault_text(error, source)) from error
