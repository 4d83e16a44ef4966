"""Judging alerts one by one, by filters that are code: in this process, or each owner's in one apart."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.filters._judge import Compiled, Judge, LiveFilter, Pass
from nightwire.filters._leashes import Leashes
from nightwire.filters._limits import time_limit
from nightwire.filters._reading import Alerts
from nightwire.filters._shape import Added, parsed
from nightwire.filters._verdicts import Verdict
from nightwire.filters._wishes import Numbered
from nightwire.filters.sandbox import Outcome, RowFilter, Sandbox
from nightwire.schemas import AlertTable, survey

Rowwise = Callable[[Alerts, Sequence[Numbered]], list[Verdict]]
"""Returns the verdict of each of some filters on all of some alerts."""


APART = "what it adds is computed in the sandbox alone, which this engine does without"


def here(budget: float) -> Rowwise:
    """Return what judges in this process, each filter within *budget*: CPU time for one call. [s]"""

    def judge(alerts: Alerts, filters: Sequence[Numbered]) -> list[Verdict]:
        unfit = [Verdict(number, evaluated=0, fault=APART) for number, live in filters if live.transform]
        filters = [one for one in filters if not one[1].transform]
        narrow = [one for one in filters if reads_columns(one[1])]
        wide = [one for one in filters if not reads_columns(one[1])]
        rows = [alerts.table.view(row) for row in range(len(alerts.table))] if narrow else []
        return unfit + _judged(narrow, rows, budget) + _judged(wide, alerts.views() if wide else [], budget)

    return judge


def reads_columns(live: LiveFilter) -> bool:
    """Return whether it is known what a filter reads."""
    return bool(live.fields)


def _judged(filters: Sequence[Numbered], views: Sequence[Any], budget: float) -> list[Verdict]:
    compiled = [(number, _compiled(live)) for number, live in filters]
    judge = Judge([one for _, one in compiled], time_limit, budget)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return [_verdict(number, judge, one, views) for number, one in compiled]


@lru_cache(maxsize=4096)
def _compiled(live: LiveFilter) -> Compiled:
    return Compiled(live, time_limit)


def _verdict(number: int, judge: Judge, one: Compiled, views: Sequence[Any]) -> Verdict:
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


def apart(sandbox: Sandbox, leashes: Leashes) -> Rowwise:
    """Return what judges in *sandbox*, each filter as long as its leash; who had to be stopped comes last."""

    def judge(alerts: Alerts, filters: Sequence[Numbered]) -> list[Verdict]:
        out = [
            Verdict(number, evaluated=0, late=True, fault=why)
            for number, live in filters
            if (why := leashes.out(live)) is not None
        ]
        tried = sorted(
            (one for one in filters if leashes.out(one[1]) is None), key=lambda one: leashes.is_short(one[1])
        )
        return out + (_tried(sandbox, leashes, alerts, tried) if tried else [])

    return judge


def _tried(sandbox: Sandbox, leashes: Leashes, alerts: Alerts, filters: Sequence[Numbered]) -> list[Verdict]:
    rows = len(alerts.table)
    asked = [_row_filter(live, leashes.length(live, rows)) for _, live in filters]
    outcomes = sandbox.judge(
        asked, alerts.survey,
        batch=alerts.batch, values=alerts.values or None, schemas=alerts.schemas,
    )  # fmt: skip
    for one in asked:
        leashes.note(one, outcomes[one.key])
    return [
        from_outcome(number, fitting(outcomes[live.key], live.shape.adds), rows) for number, live in filters
    ]


def nowhere(reason: str) -> Rowwise:
    """Return what judges nothing, for *reason*: every alert is a fault."""

    def judge(alerts: Alerts, filters: Sequence[Numbered]) -> list[Verdict]:
        return [Verdict(number, evaluated=0, fault=reason) for number, _ in filters]

    return judge


def _row_filter(live: LiveFilter, cpu_s: float) -> RowFilter:
    fields = live.fields if reads_columns(live) else None
    named = (live.owner, live.name, live.version, live.source, live.entry)
    return RowFilter(*named, fields, cpu_s, live.transform)


def fitting(outcome: Outcome, adds: Sequence[Added]) -> Outcome:
    """Return *outcome*, but with a fault for each alert to which a transform adds what is not as declared.

    Args:
        outcome: What the sandbox said.
        adds: What the transform declares; nothing for any other filter.
    """
    if not adds:
        return outcome
    rows = outcome.passed.tolist()
    texts = outcome.added if len(outcome.added) == len(rows) else [""] * len(rows)
    said = [parsed(adds, text) for text in texts]
    kept = [at for at, one in enumerate(said) if not isinstance(one, str)]
    wrong = {row: one for row, one in zip(rows, said, strict=True) if isinstance(one, str)}
    return replace(
        outcome,
        passed=outcome.passed[kept],
        rank=outcome.rank[kept],
        added=[texts[at] for at in kept],
        faults={**outcome.faults, **wrong},
    )


def from_outcome(number: int, outcome: Outcome, rows: int) -> Verdict:
    """Return what the sandbox said of a filter on so many *rows* as its verdict."""
    return Verdict(
        number,
        outcome.passed,
        outcome.rank,
        outcome.faults,
        outcome.evaluated if outcome.evaluated < rows else None,
        late=outcome.stopped is not None,
        fault=outcome.stopped,
        cpu_s=outcome.cpu_s,
        added=dict(zip(outcome.passed.tolist(), outcome.added, strict=False)),
    )


def some(alerts: Alerts, rows: Any) -> Alerts:
    """Return some of *alerts*, by their rows, to be judged by filters that read columns."""
    batch = alerts.batch.take(pa.array(rows))
    return replace(alerts, batch=batch, table=AlertTable(batch, survey(alerts.survey)), values=())
