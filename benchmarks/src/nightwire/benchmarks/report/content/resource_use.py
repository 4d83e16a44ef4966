"""What processes used, in the runs of an experiment and over time.  Pure."""

from collections.abc import Sequence
from typing import Any

from nightwire.benchmarks import Better
from nightwire.benchmarks.model.statistics import UNSTABLE, median, ratios, summary
from nightwire.benchmarks.report.content.formatting import Entry, Result
from nightwire.benchmarks.report.content.publications import Measured

Recorded = dict[str, Any]

SAMPLED = frozenset({"cpu_seconds", "peak_rss_bytes", "sent_bytes", "received_bytes"})
"""What is kept of each run; all else is what the recorder has, added up over the run."""


def process_use(result: Result, one: Measured) -> Entry | None:
    """Return what the process that *one* names used in runs of both kinds; None: no such run.

    Value and baseline are medians, the ratio is that of the pairs, as of any figure.
    """
    ours, theirs = (_by_pair(result, one, kind) for kind in ("subject", "baseline"))
    if not ours:
        return None
    pairs = summary(paired) if (paired := ratios(ours, theirs)) else None
    spread = (pairs or summary(list(ours.values()))).spread
    return {
        "value": median(list(ours.values())),
        "baseline": median(list(theirs.values())) if theirs else None,
        "ratio": pairs.median if pairs else None,
        "spread": spread,
        "unstable": spread > UNSTABLE,
        "runs": len(ours),
        "baseline_is": None,
        "better": Better.LOWER,
        "unit": "1",
    }


def _by_pair(result: Result, one: Measured, kind: str) -> dict[int, float]:
    if one.use not in SAMPLED:
        return in_runs(result, one.experiment, kind, one.process, one.use)
    return {
        sample["pair"]: process[one.use]
        for sample in result["samples"]
        if (sample["experiment"], sample["kind"]) == (one.experiment, kind)
        for process in sample["processes"]
        if process["name"] == one.process and process.get(one.use) is not None
    }


def of_role(recorded: Recorded, role: str, quantity: str) -> list[float]:
    """Return what the process *role* and its children took at each step; empty without it."""
    rows: list[Sequence[float | None]] = [
        one["values"]
        for one in recorded["processes"]
        if one["quantity"] == quantity and (one["role"] == role or one["role"].startswith(f"{role}: "))
    ]
    return [sum(value or 0.0 for value in values) for values in zip(*rows, strict=True)]


def within(values: Sequence[float], step: float, begin: float, end: float) -> float:
    """Return what was taken from *begin* to *end*; *values* are rates over steps. [s]"""
    return sum(
        value * max(0.0, min(end, (place + 1) * step) - max(begin, place * step))
        for place, value in enumerate(values)
    )


def in_runs(result: Result, experiment: str, kind: str, role: str, quantity: str) -> dict[int, float]:
    """Return what *role* took in each run of an experiment, by pair; empty if not recorded."""
    recorded = result.get("recorded")
    values = of_role(recorded, role, quantity) if recorded else []
    if not recorded or not values:
        return {}
    return {
        run["pair"]: within(values, recorded["step"], run["begin"], run["end"])
        for run in recorded["runs"]
        if (run["experiment"], run["kind"]) == (experiment, kind)
    }


def over_time(result: Result, role: str, quantity: str) -> list[tuple[float, float]]:
    """Return the middle of each step [s] and what *role* took in it."""
    recorded = result.get("recorded")
    values = of_role(recorded, role, quantity) if recorded else []
    step = recorded["step"] if recorded else 0.0
    return [((place + 0.5) * step, value) for place, value in enumerate(values)]


def thinned(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """Return at most about *most* points, each the mean of those that follow each other."""
    each = -(-len(points) // most) or 1
    parts = [points[at : at + each] for at in range(0, len(points), each)]
    return [(sum(x for x, _y in part) / len(part), sum(y for _x, y in part) / len(part)) for part in parts]
