"""Judging alerts one by one, by filters that are code: in this process, or each owner's in one
apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from nightwire.filters.evaluation.cpu_budget import CpuBudget
from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.transform import AddedField, parse_added
from nightwire.filters.reading.alerts import Alerts
from nightwire.filters.reading.requirements import NumberedFilter
from nightwire.filters.sandbox import Outcome, RowFilter, Sandbox
from nightwire.schemas import AlertTable, survey

RowJudge = Callable[[Alerts, Sequence[NumberedFilter]], list[Verdict]]
"""Returns the verdict of each of some filters on all of some alerts."""


def reads_columns(live: LiveFilter) -> bool:
    """Return whether it is known what a filter reads."""
    return bool(live.fields)


def judge_in_sandbox(sandbox: Sandbox, leashes: CpuBudget) -> RowJudge:
    """Return what judges in *sandbox*, each filter as long as its leash.

    Who had to be stopped comes last.
    """

    def judge(alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
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


def _tried(
    sandbox: Sandbox, leashes: CpuBudget, alerts: Alerts, filters: Sequence[NumberedFilter]
) -> list[Verdict]:
    rows = len(alerts.table)
    asked = [_row_filter(live, leashes.length(live, rows)) for _, live in filters]
    outcomes = sandbox.judge(
        asked, alerts.survey,
        batch=alerts.batch, values=alerts.values or None, schemas=alerts.schemas,
    )  # fmt: skip
    for one in asked:
        leashes.note(one, outcomes[one.key])
    return [
        verdict_of_outcome(number, check_added(outcomes[live.key], live.transformation.adds), rows)
        for number, live in filters
    ]


def judge_nothing(reason: str) -> RowJudge:
    """Return what judges nothing, for *reason*: every alert is a fault."""

    def judge(alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
        return [Verdict(number, evaluated=0, fault=reason) for number, _ in filters]

    return judge


def _row_filter(live: LiveFilter, cpu_s: float) -> RowFilter:
    fields = live.fields if reads_columns(live) else None
    named = (live.owner, live.name, live.version, live.source, live.entry)
    return RowFilter(*named, fields, cpu_s, live.transform)


def check_added(outcome: Outcome, adds: Sequence[AddedField]) -> Outcome:
    """Return *outcome*, but with a fault for each alert to which a transform adds what is not as
    declared.

    Args:
        outcome: What the sandbox said.
        adds: What the transform declares; nothing for any other filter.
    """
    if not adds:
        return outcome
    rows = outcome.passed.tolist()
    texts = outcome.added if len(outcome.added) == len(rows) else [""] * len(rows)
    said = [parse_added(adds, text) for text in texts]
    kept = [at for at, one in enumerate(said) if not isinstance(one, str)]
    wrong = {row: one for row, one in zip(rows, said, strict=True) if isinstance(one, str)}
    return replace(
        outcome,
        passed=outcome.passed[kept],
        rank=outcome.rank[kept],
        added=[texts[at] for at in kept],
        faults={**outcome.faults, **wrong},
    )


def verdict_of_outcome(number: int, outcome: Outcome, rows: int) -> Verdict:
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


def take_rows(alerts: Alerts, rows: Any) -> Alerts:
    """Return some of *alerts*, by their rows, to be judged by filters that read columns."""
    batch = alerts.batch.take(pa.array(rows))
    return replace(alerts, batch=batch, table=AlertTable(batch, survey(alerts.survey)), values=())
