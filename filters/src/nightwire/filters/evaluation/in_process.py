"""Judging alerts: which filters an alert passes, and what to count.

Pure but for the time limit, which the caller passes in.  No Spark, no Kafka.
"""

import math
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from types import FrameType
from typing import Any

import numpy as np

from nightwire.filters.evaluation.cpu_budget import FILTER_CPU_S
from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.evaluation.rowwise import RowJudge, reads_columns
from nightwire.filters.language import FilterError, Predicate, compile_filter, fault_text, rank_of
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import Pass
from nightwire.filters.reading.alerts import Alerts
from nightwire.filters.reading.requirements import UNREAD, NumberedFilter

Limit = Callable[[float], AbstractContextManager[None]]


@dataclass
class FilterTally:
    """What became of the alerts that one filter looked at; ``evaluated = passed + rejected + faulted``.

    *fault* is the first one, *culprit* the id of the alert on which it happened.
    """

    version: int
    evaluated: int = 0
    passed: int = 0
    rejected: int = 0
    faulted: int = 0
    fault: str | None = None
    culprit: str | None = None
    late: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)


class CompiledFilter:
    """A filter's function, made at its first use and kept; one that cannot be made faults every alert."""

    def __init__(self, live: LiveFilter, limit: Limit) -> None:
        self.live = live
        self.broken: str | None = None
        self.function: Predicate | None = None
        try:
            with limit(FILTER_CPU_S):
                self.function = compile_filter(live.source, live.entry)
        except FilterError as error:
            self.broken = str(error)
        except TimeLimit:
            self.broken = f"its top level took longer than {FILTER_CPU_S:g} s"


@dataclass
class Judge:
    """Judges chunks of one survey's alerts by all filters, each within its budget of time.

    Args:
        filters: Those of this survey.
        limit: Makes a context that raises `TimeLimit` after so many seconds.
        budget: CPU time for each filter, over all chunks. [s]
    """

    filters: Sequence[CompiledFilter]
    limit: Limit
    budget: float = FILTER_CPU_S
    tallies: dict[str, FilterTally] = field(default_factory=dict)
    _spent: dict[str, float] = field(default_factory=dict)

    def judge(self, alerts: Sequence[Any]) -> list[list[Pass]]:
        """Return, for each of *alerts*, the filters that it passes, in the order of the filters."""
        passes: list[list[Pass]] = [[] for _ in alerts]
        for one in self.filters:
            tally = self.tallies.setdefault(one.live.key, FilterTally(one.live.version))
            outcomes = self._outcomes(one, alerts, tally)
            for index, outcome in enumerate(outcomes):
                if isinstance(outcome, Pass):
                    passes[index].append(outcome)
            _count(tally, outcomes, len(alerts))
        return passes

    def outcomes(
        self, one: CompiledFilter, alerts: Sequence[Any]
    ) -> tuple[Sequence[Pass | bool | None], FilterTally]:
        """Return what filter *one* says of each of *alerts*, and its tally.

        Outcomes are a `Pass`, False (rejected) or None (faulted); fewer than *alerts* when time ran out.
        """
        tally = self.tallies.setdefault(one.live.key, FilterTally(one.live.version))
        return self._outcomes(one, alerts, tally), tally

    def spent(self, key: str) -> float:
        """Return the CPU time that filter *key* took. [s]"""
        return self._spent.get(key, 0.0)

    def _outcomes(
        self, one: CompiledFilter, alerts: Sequence[Any], tally: FilterTally
    ) -> list[Pass | bool | None]:
        """Return a `Pass`, False (rejected) or None (faulted) per alert; shorter when time ran out."""
        outcomes: list[Pass | bool | None] = []
        key, began = one.live.key, time.process_time()
        left = self.budget - self._spent.get(key, 0.0)
        if one.function is None:
            tally.fault = one.broken
            return [None] * len(alerts)
        if left > 0:
            try:
                with self.limit(left):
                    for alert in alerts:
                        outcomes.append(_outcome(one, alert, tally))
            except TimeLimit as error:
                tally.fault = f"took longer than {self.budget:g} s: {fault_text(error, one.live.source)}"
                self._spent[key] = self.budget
        tally.late = tally.late or len(outcomes) < len(alerts)
        self._spent[key] = self._spent.get(key, 0.0) + time.process_time() - began
        return outcomes


def _outcome(one: CompiledFilter, alert: Any, tally: FilterTally) -> Pass | bool | None:
    try:
        result = one.function(alert)  # type: ignore[misc]  # broken ones do not come here
        if not result:
            return False
        rank = rank_of(result)
        return Pass(one.live.key, one.live.version, None if math.isnan(rank) else rank)
    except TimeLimit:
        raise
    except BaseException as error:  # noqa: BLE001 - a filter's SystemExit is its fault, not ours
        if tally.fault is None or (UNREAD in str(error) and UNREAD not in tally.fault):
            tally.fault = fault_text(error, one.live.source)
            tally.culprit = _id(alert)
        return None


def _id(alert: Any) -> str | None:
    found = getattr(alert, "id", None)
    return None if found is None else str(found)


def _count(tally: FilterTally, outcomes: Sequence[Pass | bool | None], offered: int) -> None:
    passed = sum(isinstance(outcome, Pass) for outcome in outcomes)
    rejected = sum(outcome is False for outcome in outcomes)
    tally.evaluated += offered
    tally.passed += passed
    tally.rejected += rejected
    tally.faulted += offered - passed - rejected


PATIENCE = 5.0
"""Wall time allowed per CPU time: a filter that only waits is stopped too, one on a busy machine is not."""

AGAIN = 0.1
"""The timer fires again after this, in case the filter swallowed the first. [s]"""


class TimeLimit(BaseException):
    """The filter took too long.  Not an `Exception`, so that a filter's own ``except`` lets it through."""


def _expired(_number: int, _frame: FrameType | None) -> None:
    raise TimeLimit


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` inside the block after *seconds* of CPU time [s], or five times that by the clock.

    Outside the main thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, _expired) for number in (signal.SIGPROF, signal.SIGALRM)}
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)
        signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE, AGAIN)
        yield
    finally:
        _disarm()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _disarm() -> None:
    """Stop both timers, even where they fire while we do."""
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        try:
            signal.setitimer(timer, 0)
        except TimeLimit:
            signal.setitimer(timer, 0)


NEEDS_SANDBOX = "what it adds is computed in the sandbox alone, which this engine does without"


def judge_in_process(budget: float) -> RowJudge:
    """Return what judges in this process, each filter within *budget*: CPU time for one call. [s]"""

    def judge(alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
        unfit = [
            Verdict(number, evaluated=0, fault=NEEDS_SANDBOX) for number, live in filters if live.transform
        ]
        filters = [one for one in filters if not one[1].transform]
        narrow = [one for one in filters if reads_columns(one[1])]
        wide = [one for one in filters if not reads_columns(one[1])]
        rows = [alerts.table.view(row) for row in range(len(alerts.table))] if narrow else []
        return unfit + _judged(narrow, rows, budget) + _judged(wide, alerts.views() if wide else [], budget)

    return judge


def _judged(filters: Sequence[NumberedFilter], views: Sequence[Any], budget: float) -> list[Verdict]:
    compiled = [(number, _compiled(live)) for number, live in filters]
    judge = Judge([one for _, one in compiled], time_limit, budget)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return [_verdict(number, judge, one, views) for number, one in compiled]


@lru_cache(maxsize=4096)
def _compiled(live: LiveFilter) -> CompiledFilter:
    return CompiledFilter(live, time_limit)


def _verdict(number: int, judge: Judge, one: CompiledFilter, views: Sequence[Any]) -> Verdict:
    outcomes, tally = judge.outcomes(one, views)
    passed = [(row, outcome.rank) for row, outcome in enumerate(outcomes) if isinstance(outcome, Pass)]
    return Verdict(
        number,
        np.array([row for row, _ in passed], np.int64),
        np.array([math.nan if rank is None else rank for _, rank in passed], np.float64),
        {row: tally.fault or "" for row, outcome in enumerate(outcomes) if outcome is None},
        len(outcomes) if len(outcomes) < len(views) else None,
        late=tally.late,
        fault=tally.fault,
        cpu_s=judge.spent(one.live.key),
    )
