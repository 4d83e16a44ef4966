"""Filters that are code, judged alert by alert in the engine's own process: ``--sandbox none``.

The process's interval timers limit the time of each filter.  A loop in Python code is interrupted;
one inside C code (a giant regular expression, a NumPy call) is not, until it returns.  The timers
work only in the main thread of a process, which is where Spark's Python workers judge.
"""

import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType
from typing import Any

import numpy as np

from nightwire.filters.evaluation.cpu_budget import FILTER_CPU_S
from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.evaluation.rowwise import RowJudge
from nightwire.filters.language import FilterError, Predicate, compile_filter, fault_text, rank_of
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.reading.alerts import Alerts
from nightwire.filters.reading.requirements import UNREAD, NumberedFilter

WALL_FACTOR = 5.0
"""Wall time allowed per CPU time: a filter that only waits is stopped too, one on a busy machine is
not."""

REPEAT_S = 0.1
"""The timer fires again after this, in case the filter swallowed the first signal. [s]"""

NEEDS_SANDBOX = "what it adds is computed in the sandbox alone, which this engine does without"
COLUMNS_NEED_SANDBOX = "a function of columns is judged in the sandbox alone, which this engine does without"


class TimeLimit(BaseException):
    """The filter took too long.  No `Exception`: a filter's own ``except`` lets it through."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` inside the block after *seconds* of CPU time [s], or five times that by the
    clock.

    Outside the main thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, _expired) for number in (signal.SIGPROF, signal.SIGALRM)}
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, REPEAT_S)
        signal.setitimer(signal.ITIMER_REAL, seconds * WALL_FACTOR, REPEAT_S)
        yield
    finally:
        _disarm()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _expired(_number: int, _frame: FrameType | None) -> None:
    raise TimeLimit


def _disarm() -> None:
    """Stop both timers, even where they fire meanwhile."""
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        try:
            signal.setitimer(timer, 0)
        except TimeLimit:
            signal.setitimer(timer, 0)


class CompiledFilter:
    """The function of a filter; where its source cannot be run, *broken* says why instead.

    Args:
        live: The filter.
    """

    def __init__(self, live: LiveFilter) -> None:
        self.source = live.source
        self.broken: str | None = None
        self.function: Predicate | None = None
        try:
            with time_limit(FILTER_CPU_S):
                self.function = compile_filter(live.source, live.entry)
        except FilterError as error:
            self.broken = str(error)
        except TimeLimit:
            self.broken = f"its top level took longer than {FILTER_CPU_S:g} s"


def judge_in_process(budget: float) -> RowJudge:
    """Return a judge in this process that gives each filter a CPU time of *budget*. [s]"""

    def judge(alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
        unfit = [
            Verdict(number, evaluated=0, fault=NEEDS_SANDBOX) for number, live in filters if live.transform
        ]
        filters = [one for one in filters if not one[1].transform]
        unfit += [
            Verdict(number, evaluated=0, fault=COLUMNS_NEED_SANDBOX)
            for number, live in filters
            if live.text_facts.columns is not None
        ]
        filters = [one for one in filters if one[1].text_facts.columns is None]
        narrow = [one for one in filters if one[1].fields]
        wide = [one for one in filters if not one[1].fields]
        rows = [alerts.table.view(row) for row in range(len(alerts.table))] if narrow else []
        whole = alerts.views() if wide else []
        return unfit + _judge_all(narrow, rows, budget) + _judge_all(wide, whole, budget)

    return judge


def _judge_all(filters: Sequence[NumberedFilter], views: Sequence[Any], budget: float) -> list[Verdict]:
    compiled = [(number, _compiled(live)) for number, live in filters]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return [judge_views(number, one, views, budget) for number, one in compiled]


@lru_cache(maxsize=4096)
def _compiled(live: LiveFilter) -> CompiledFilter:
    return CompiledFilter(live)


def judge_views(number: int, one: CompiledFilter, views: Sequence[Any], budget: float) -> Verdict:
    """Return the verdict of one filter on some alerts.

    Args:
        number: The filter's.
        one: The filter.
        views: The alerts as filters see them.
        budget: CPU time that it may take. [s]
    """
    if one.function is None:
        return Verdict(number, faults=dict.fromkeys(range(len(views)), one.broken or ""), fault=one.broken)
    run, began = _Run(one.function, one.source), time.process_time()
    try:
        with time_limit(budget):
            for view in views:
                run.outcomes.append(run.outcome(view))
    except TimeLimit as error:
        run.fault = f"took longer than {budget:g} s: {fault_text(error, one.source)}"
    return run.verdict(number, len(views), time.process_time() - began)


class _Run:
    """One filter on its way through some alerts.

    *outcomes* holds for each alert its rank, NaN where the filter gave none; False where it is
    rejected; None where the filter failed on it.  Each comes in one step: the time limit may strike
    between any two.
    """

    def __init__(self, function: Predicate, source: str) -> None:
        self._function, self._source = function, source
        self.outcomes: list[float | bool | None] = []
        self.fault: str | None = None

    def outcome(self, view: Any) -> float | bool | None:
        """Return the outcome of an alert; keep the first fault, or one that says `UNREAD`."""
        try:
            result = self._function(view)
            return rank_of(result) if result else False
        except TimeLimit:
            raise
        except BaseException as error:  # noqa: BLE001 - a filter's SystemExit is its fault, not ours
            if self.fault is None or (UNREAD in str(error) and UNREAD not in self.fault):
                self.fault = fault_text(error, self._source)
            return None

    def verdict(self, number: int, offered: int, cpu_s: float) -> Verdict:
        """Return the verdict on so many alerts *offered*, which took *cpu_s*. [s]"""
        passed = [(row, one) for row, one in enumerate(self.outcomes) if one is not None and one is not False]
        evaluated, late = len(self.outcomes), len(self.outcomes) < offered
        return Verdict(
            number,
            np.array([row for row, _ in passed], np.int64),
            np.array([rank for _, rank in passed], np.float64),
            {row: self.fault or "" for row, outcome in enumerate(self.outcomes) if outcome is None},
            evaluated if late else None,
            late=late,
            fault=self.fault,
            cpu_s=cpu_s,
        )
