"""Judging by compiled filters, over columns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.language import evaluate_all
from nightwire.filters.reading.requirements import NumberedFilter, load_program
from nightwire.schemas import AlertTable

Fallback = Callable[[NumberedFilter, Any], Verdict]
"""Judges some rows of all alerts alert by alert."""


def judge_vectorized(
    filters: Sequence[NumberedFilter], table: AlertTable, fallback: Fallback
) -> list[Verdict]:
    """Return the verdict of each of *filters* on all alerts of *table*.

    Args:
        filters: Compiled ones.
        table: The alerts.
        fallback: Asked about rows of which only Python itself can tell.
    """
    try:
        results = evaluate_all([load_program(live.program) for _, live in filters], table)
    except Exception:  # noqa: BLE001 - one of them cannot be evaluated: it must not take the others along
        return [_alone(one, table, fallback) for one in filters]
    return [_verdict(one, result, fallback) for one, result in zip(filters, results, strict=True)]


def _alone(one: NumberedFilter, table: AlertTable, fallback: Fallback) -> Verdict:
    try:
        (result,) = evaluate_all([load_program(one[1].program)], table)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this filter's
        return Verdict(one[0], evaluated=0, fault=f"{type(error).__name__}: {error}")
    return _verdict(one, result, fallback)


def _verdict(one: NumberedFilter, result: Any, fallback: Fallback) -> Verdict:
    passed = np.flatnonzero(result.passed)
    verdict = Verdict(one[0], passed, result.rank[passed], result.faults, cpu_s=result.cpu_s)
    return (
        merge_verdicts(verdict, result.needs_python, fallback(one, result.needs_python))
        if len(result.needs_python)
        else verdict
    )


def merge_verdicts(verdict: Verdict, rows: Any, other: Verdict) -> Verdict:
    """Return *verdict*, with that of *other* on *rows*."""
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
