"""The counts of a simulation or a replay, as a table or JSON."""

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from nightwire.core.runtime import Lateness
from nightwire.producer.visits.counts import VisitCounts

COUNTS = ("in", "acknowledged", "refused")
SHOWN = 20
"""Visits in the table: the latest."""


def summary(played: Sequence[tuple[VisitCounts, Lateness]], survey: str) -> dict[str, Any]:
    """Return the counts of visits, each with the lateness of its alerts. [s]"""
    visits = [{"visit": counts.visit} | _counts(counts) | _behind(late) for counts, late in played]
    sums = {name: sum(visit[name] for visit in visits) for name in COUNTS}
    worst = max((late.greatest for _ledger, late in played), default=0.0)
    return {"survey": survey, **sums, "behind_max_seconds": round(worst, 3), "visits": visits}


def _counts(counts: VisitCounts) -> dict[str, int]:
    refused = sum(counts.refused.values()) + counts.dead_lettered
    return {"in": counts.offered, "acknowledged": counts.acknowledged, "refused": refused}


def _behind(late: Lateness) -> dict[str, float]:
    return {
        "behind_max_seconds": round(late.greatest, 3),
        "behind_median_seconds": round(late.median, 3),
    }


def show(counts: dict[str, Any], *, as_json: bool) -> None:
    """Print *counts* as a table, or as JSON."""
    if as_json:
        click.echo(json.dumps(counts))
        return
    table = Table("visit", box=None, pad_edge=False, header_style="bold")
    for name in (*COUNTS, "behind [s]", "median"):
        table.add_column(name, justify="right")
    for visit in counts["visits"][-SHOWN:]:
        late = (f"{visit[f'behind_{what}_seconds']:.2f}" for what in ("max", "median"))
        table.add_row(str(visit["visit"]), *(f"{visit[name]:,}" for name in COUNTS), *late)
    worst = f"{counts['behind_max_seconds']:.2f}"
    table.add_row("all", *(f"{counts[name]:,}" for name in COUNTS), worst, "")
    Console().print(table)
