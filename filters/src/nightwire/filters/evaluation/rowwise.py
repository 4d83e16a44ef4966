"""Judging alert by alert in the sandbox, for filters that are code: each owner's apart."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from nightwire.filters.evaluation.cpu_budget import CpuBudget
from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.transform import AddedField, parse_added
from nightwire.filters.reading.alerts import Alerts, with_batch
from nightwire.filters.reading.matches import as_asked, asks_own, versions_of
from nightwire.filters.reading.requirements import NumberedFilter
from nightwire.filters.sandbox import Outcome, RowFilter, Sandbox
from nightwire.schemas import AlertTable, survey

RowJudge = Callable[[Alerts, Sequence[NumberedFilter]], list[Verdict]]
"""Returns the verdict of each of some filters on all of some alerts."""


def judge_in_sandbox(sandbox: Sandbox, budget: CpuBudget) -> RowJudge:
    """Return a judge in *sandbox*; filters that had to be stopped the last time come last."""

    def judge(alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
        refused = [
            Verdict(number, evaluated=0, late=True, fault=refusal)
            for number, live in filters
            if (refusal := budget.refusal(live)) is not None
        ]
        tried = [one for one in filters if budget.refusal(one[1]) is None]
        tried.sort(key=lambda one: budget.was_stopped(one[1]))
        return refused + (_try(sandbox, budget, alerts, tried) if tried else [])

    return judge


def _try(
    sandbox: Sandbox, budget: CpuBudget, alerts: Alerts, filters: Sequence[NumberedFilter]
) -> list[Verdict]:
    rows = len(alerts.table)
    wanted = [_row_filter(live, budget.cpu_s(live, rows)) for _, live in filters]
    outcomes = sandbox.judge(
        wanted, alerts.survey,
        batch=alerts.batch, values=alerts.values or None, schemas=alerts.schemas,
    )  # fmt: skip
    for one in wanted:
        budget.record(one, outcomes[one.key])
    return [
        verdict_of_outcome(number, check_added(outcomes[live.key], live.transformation.adds), rows)
        for number, live in filters
    ]


def judge_nothing(reason: str) -> RowJudge:
    """Return a judge that judges nothing, for *reason*: every alert is a fault."""

    def judge(alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
        return [Verdict(number, evaluated=0, fault=reason) for number, _ in filters]

    return judge


def _row_filter(live: LiveFilter, cpu_s: float) -> RowFilter:
    fields = live.fields or None
    named = (live.owner, live.name, live.version, live.source, live.entry)
    facts = live.text_facts
    imports = facts.imports if live.facts else None
    return RowFilter(*named, fields, cpu_s, live.transform, imports, facts.columns, facts.canonical)


def in_rounds(judge: RowJudge) -> RowJudge:
    """Return a judge that gives filters the matches that each of them asks for, by its own names.

    Filters are judged in as few rounds as there are versions of one catalogue in use; those of an
    owner who asks for catalogues of his own in rounds of their own, which no other owner sees.
    """

    def judged(alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for matches, some in rounds(filters):
            verdicts += judge(with_batch(alerts, as_asked(alerts.batch, [*matches.values()])), some)
        return verdicts

    return judged


def rounds(filters: Sequence[NumberedFilter]) -> list[tuple[dict[str, str], list[NumberedFilter]]]:
    """Return which filters are judged together, and the matches that they ask for.  Pure."""
    found: dict[str, list[tuple[dict[str, str], list[NumberedFilter]]]] = {}
    for one in filters:
        asked = versions_of(one[1].text_facts.matches)
        there = found.setdefault(one[1].owner if asks_own(asked) else "", [])
        fitting = (
            known for known in there if all(known[0].get(name, it) == it for name, it in asked.items())
        )
        if (chosen := next(fitting, None)) is None:
            chosen = ({}, [])
            there.append(chosen)
        chosen[0].update(asked)
        chosen[1].append(one)
    return [one for some in found.values() for one in some]


def check_added(outcome: Outcome, adds: Sequence[AddedField]) -> Outcome:
    """Return *outcome*, with a fault for each alert to which a transform adds undeclared values.

    Args:
        outcome: The sandbox's.
        adds: What the transform declares; nothing for any other filter.
    """
    if not adds:
        return outcome
    rows = outcome.passed.tolist()
    texts = outcome.added if len(outcome.added) == len(rows) else [""] * len(rows)
    values = [parse_added(adds, text) for text in texts]
    kept = [at for at, one in enumerate(values) if not isinstance(one, str)]
    wrong = {row: one for row, one in zip(rows, values, strict=True) if isinstance(one, str)}
    return replace(
        outcome,
        passed=outcome.passed[kept],
        rank=outcome.rank[kept],
        added=[texts[at] for at in kept],
        faults={**outcome.faults, **wrong},
    )


def verdict_of_outcome(number: int, outcome: Outcome, rows: int) -> Verdict:
    """Return the sandbox's *outcome* of a filter on so many *rows* as a verdict."""
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
