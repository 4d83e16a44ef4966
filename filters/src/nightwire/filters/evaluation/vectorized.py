"""Judging alerts by compiled filters, over columns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.language import evaluate_all
from nightwire.filters.reading.requirements import NumberedFilter, load_program
from nightwire.schemas import AlertTable

Fallback = Callable[[NumberedFilter, Any], Verdict]
"""Judges some rows of all alerts alert by alert."""


def judge_vectorized(filters: Sequence[NumberedFilter], table: AlertTable, again: Fallback) -> list[Verdict]:
    """Return the verdict of each of *filters* on all alerts of *table*.

    Args:
        filters: Compiled ones.
        table: The alerts.
        again: Asked about rows of which only Python itself can tell.
    """
    try:
        found = evaluate_all([load_program(live.program) for _, live in filters], table)
    except Exception:  # noqa: BLE001 - one of them cannot be evaluated: it must not take the others along
        return [_alone(one, table, again) for one in filters]
    return [_verdict(one, said, again) for one, said in zip(filters, found, strict=True)]


def _alone(one: NumberedFilter, table: AlertTable, again: Fallback) -> Verdict:
    try:
        (said,) = evaluate_all([load_program(one[1].program)], table)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this filter's
        return Verdict(one[0], evaluated=0, fault=f"{type(error).__name__}: {error}")
    return _verdict(one, said, again)


def _verdict(one: NumberedFilter, said: Any, again: Fallback) -> Verdict:
    passed = np.flatnonzero(said.passed)
    verdict = Verdict(one[0], passed, said.rank[passed], said.faults, cpu_s=said.cpu_s)
    return (
        merge_verdicts(verdict, said.needs_python, again(one, said.needs_python))
        if len(said.needs_python)
        else verdict
    )


def merge_verdicts(verdict: Verdict, rows: Any, other: Verdict) -> Verdict:
    """Return *verdict*, but what *other* says of *rows*."""
    keep = ~np.isin(verdict.passed, rows)
    passed = np.concatenate([verdict.passed[keep], other.passed])
    order = np.argsort(passed, kind="stable")
    rank = np.concatenate([verdict.rank[keep], other.rank])
    unsure = set(rows.tolist())
    faults = {row: text for row, text in verdict.faults.items() if row not in unsure}
    return Verdict(
        verdict.number, passed[order], rank[order], {**faults, **other.faults}, None, other.late, other.fault,
        verdict.cpu_s + other.cpu_s,
    )  # fmt: skip
