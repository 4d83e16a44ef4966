"""Judging alerts: which filters an alert passes, and what to count.

Pure but for the time limit, which the caller passes in.  No Spark, no Kafka.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any

from nightwire.filters._limits import TimeLimit
from nightwire.filters._mentions import UNREAD
from nightwire.filters._shape import Shape, declared
from nightwire.filters.language import FilterError, Predicate, compile_filter, fault_text, rank_of
from nightwire.schemas import topics

Limit = Callable[[float], AbstractContextManager[None]]

BUDGET = 2.0
"""CPU time that one filter may take in one task of one batch. [s]"""


@dataclass(frozen=True, order=True)
class LiveFilter:
    """One version of somebody's filter.

    Attributes:
        owner: Whose.
        name: Which.
        version: Its version, from 1.
        survey: Whose alerts it judges; ``*`` means every survey's.
        source: Its text.
        entry: Its function, where it is Python.
        cap: Most alerts per visit that it lets through; 0 for all.
        choice: Which ones: ``first`` or ``best``.
        language: ``python`` or ``sql``.
        program: The same compiled, as text; empty where it is judged row by row.
        fields: Dotted paths of what it reads of an alert; empty where that is not known.
        sources: Topics that it judges; none for its survey's alerts.
        output: Topic of what passed; empty for its own.
        drop: Dotted paths of what a transform leaves out.
        means: Dotted paths of numbers in arrays whose mean a transform adds.
        transform: Its function that computes what is added; empty where nothing is.
    """

    owner: str
    name: str
    version: int
    survey: str
    source: str
    entry: str
    cap: int = 20
    choice: str = "first"
    language: str = "python"
    program: str = ""
    fields: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    output: str = ""
    drop: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    transform: str = ""

    @property
    def key(self) -> str:
        """``owner/name``: what accounts and topics call it, whatever the version."""
        return f"{self.owner}/{self.name}"

    @property
    def topic(self) -> str:
        """Topic of what passed."""
        return self.output or topics.filter_topic(self.owner, self.name)

    @property
    def shape(self) -> Shape:
        """What becomes of what passed."""
        return Shape(self.drop, self.means, declared(self.source) if self.transform else ())

    def judges(self, topic: str) -> bool:
        """Return whether it judges alerts that lie in *topic*."""
        if self.sources:
            return topic in self.sources
        kind, _, survey = topic.partition(".")
        return kind == "alerts" and self.survey in ("*", survey)

    def wants(self, survey: str, topic: str) -> bool:
        """Return whether it judges alerts of *survey* that lie in *topic*."""
        return self.survey in ("*", survey) and self.judges(topic)


@dataclass
class Tally:
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


@dataclass(frozen=True)
class Pass:
    """An alert passed this filter; *rank* is the number it returned, where it returned one.

    *again* says that the visit has had a copy of the same alert before, *added* what a transform computed,
    as JSON.
    """

    key: str
    version: int
    rank: float | None = None
    again: bool = False
    added: str = ""


class Compiled:
    """A filter's function, made at its first use and kept; one that cannot be made faults every alert."""

    def __init__(self, live: LiveFilter, limit: Limit) -> None:
        self.live = live
        self.broken: str | None = None
        self.function: Predicate | None = None
        try:
            with limit(BUDGET):
                self.function = compile_filter(live.source, live.entry)
        except FilterError as error:
            self.broken = str(error)
        except TimeLimit:
            self.broken = f"its top level took longer than {BUDGET:g} s"


@dataclass
class Judge:
    """Judges chunks of one survey's alerts by all filters, each within its budget of time.

    Args:
        filters: Those of this survey.
        limit: Makes a context that raises `TimeLimit` after so many seconds.
        budget: CPU time for each filter, over all chunks. [s]
    """

    filters: Sequence[Compiled]
    limit: Limit
    budget: float = BUDGET
    tallies: dict[str, Tally] = field(default_factory=dict)
    _spent: dict[str, float] = field(default_factory=dict)

    def judge(self, alerts: Sequence[Any]) -> list[list[Pass]]:
        """Return, for each of *alerts*, the filters that it passes, in the order of the filters."""
        passes: list[list[Pass]] = [[] for _ in alerts]
        for one in self.filters:
            tally = self.tallies.setdefault(one.live.key, Tally(one.live.version))
            outcomes = self._outcomes(one, alerts, tally)
            for index, outcome in enumerate(outcomes):
                if isinstance(outcome, Pass):
                    passes[index].append(outcome)
            _count(tally, outcomes, len(alerts))
        return passes

    def outcomes(self, one: Compiled, alerts: Sequence[Any]) -> tuple[Sequence[Pass | bool | None], Tally]:
        """Return what filter *one* says of each of *alerts*, and its tally.

        Outcomes are a `Pass`, False (rejected) or None (faulted); fewer than *alerts* when time ran out.
        """
        tally = self.tallies.setdefault(one.live.key, Tally(one.live.version))
        return self._outcomes(one, alerts, tally), tally

    def spent(self, key: str) -> float:
        """Return the CPU time that filter *key* took. [s]"""
        return self._spent.get(key, 0.0)

    def _outcomes(self, one: Compiled, alerts: Sequence[Any], tally: Tally) -> list[Pass | bool | None]:
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
                        outcomes.append(_verdict(one, alert, tally))
            except TimeLimit as error:
                tally.fault = f"took longer than {self.budget:g} s: {fault_text(error, one.live.source)}"
                self._spent[key] = self.budget
        tally.late = tally.late or len(outcomes) < len(alerts)
        self._spent[key] = self._spent.get(key, 0.0) + time.process_time() - began
        return outcomes


def _verdict(one: Compiled, alert: Any, tally: Tally) -> Pass | bool | None:
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


def _count(tally: Tally, outcomes: Sequence[Pass | bool | None], offered: int) -> None:
    passed = sum(isinstance(outcome, Pass) for outcome in outcomes)
    rejected = sum(outcome is False for outcome in outcomes)
    tally.evaluated += offered
    tally.passed += passed
    tally.rejected += rejected
    tally.faulted += offered - passed - rejected
