"""What the recorder kept in a result: quantities of processes over time.  Pure."""

from collections.abc import Sequence
from typing import Any

from nightwire.benchmarks.report._words import Result

Recorded = dict[str, Any]


def of_role(recorded: Recorded, role: str, quantity: str) -> list[float]:
    """Return what the process *role* and its children took, at each step; empty where it is not there."""
    rows: list[Sequence[float | None]] = [
        one["values"]
        for one in recorded["processes"]
        if one["quantity"] == quantity and (one["role"] == role or one["role"].startswith(f"{role}: "))
    ]
    return [sum(value or 0.0 for value in values) for values in zip(*rows, strict=True)]


def within(values: Sequence[float], step: float, begin: float, end: float) -> float:
    """Return what was taken from *begin* to *end*, where *values* are rates over steps of *step*. [s]"""
    return sum(
        value * max(0.0, min(end, (place + 1) * step) - max(begin, place * step))
        for place, value in enumerate(values)
    )


def in_runs(result: Result, experiment: str, kind: str, role: str, quantity: str) -> dict[int, float]:
    """Return what *role* took in each run of an experiment, by pair; empty where nothing was recorded."""
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
