"""From the lines of the recorder to what a result keeps: series by role, thinned out.  Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite
from typing import Any

from nightwire.benchmarks.model.statistics import rounded
from nightwire.benchmarks.resources.process_stats import LOOPBACK, LOOPBACK_PID, ProcessReading, Reading

POINTS = 30_000
"""Most points of all series of processes, and again of all series of Prometheus."""
SERIES = 400
"""Most series of Prometheus: those that vary most."""
QUANTITIES = {
    "cpu": "cores",
    "memory": "byte",
    "disk_read": "byte/s",
    "disk_written": "byte/s",
    "network_sent": "byte/s",
    "network_received": "byte/s",
}

Values = list[float | None]
Recorded = dict[str, Any]


@dataclass(frozen=True)
class Span:
    """A run, from when to when (Unix time)."""

    experiment: str
    kind: str
    pair: int
    begin: float
    end: float


def reading_from(line: str) -> Reading:
    """Return what the recorder wrote as *line*.

    Raises:
        ValueError: It was cut.
    """
    moment, rows = json.loads(line)
    return Reading(moment, [ProcessReading(*row) for row in rows])


def recorded(
    readings: Sequence[Reading], roles: Mapping[int, str], metrics: Mapping[str, Any], spans: Iterable[Span]
) -> Recorded:
    """Put together what was recorded.

    Args:
        readings: Of all processes, in order.
        roles: What a process is called; its descendants are called after it.
        metrics: What the recorder has from Prometheus, and what was missing.
        spans: The runs.
    """
    began = readings[0].time if readings else float(metrics.get("began", 0.0))
    step = _step(len(readings), len(QUANTITIES) * len(set(_names(readings, roles).values())))
    return {
        "began": began,
        "step": rounded(step * _interval(readings)),
        "runs": [
            {**vars(one), "begin": round(one.begin - began, 1), "end": round(one.end - began, 1)}
            for one in spans
        ],
        "processes": list(_processes(readings, roles, step)),
        "metrics": _metrics(metrics, began),
        "missing": list(metrics.get("missing", ())),
    }


def _interval(readings: Sequence[Reading]) -> float:
    return (readings[-1].time - readings[0].time) / (len(readings) - 1) if len(readings) > 1 else 1.0


def _step(points: int, series: int) -> int:
    """Return of how many points one is made, so that *series* of *points* fit."""
    return max(1, ceil(points * series / POINTS))


def _processes(readings: Sequence[Reading], roles: Mapping[int, str], step: int) -> Iterator[dict[str, Any]]:
    """Yield each quantity of each role: means over *step* readings; null without a process."""
    names = _names(readings, {LOOPBACK_PID: LOOPBACK, **roles})
    found: dict[str, list[list[float] | None]] = {name: [] for name in dict.fromkeys(names.values())}
    for before, after in pairwise(readings):
        rates = _rates(before, after, names)
        for name, rows in found.items():
            rows.append(rates.get(name))
    for name, rows in found.items():
        for place, (quantity, unit) in enumerate(QUANTITIES.items()):
            values = thinned([None if row is None else row[place] for row in rows], step)
            if any(values):
                yield {"role": name, "quantity": quantity, "unit": unit, "values": values}


def _rates(before: Reading, after: Reading, names: Mapping[int, str]) -> dict[str, list[float]]:
    """Return the quantities between two readings by role; what is new has begun from nothing."""
    earlier, seconds = {one.pid: one for one in before.processes}, max(after.time - before.time, 1e-3)
    found: dict[str, list[float]] = {}
    for one in after.processes:
        row = found.setdefault(names[one.pid], [0.0] * len(QUANTITIES))
        now, then = _counters(one), _counters(earlier[one.pid]) if one.pid in earlier else (0.0,) * 5
        rates = [max(0.0, new - old) / seconds for new, old in zip(now, then, strict=True)]
        for place, value in enumerate([rates[0], float(one.rss), *rates[1:]]):
            row[place] += value
    return found


def _counters(one: ProcessReading) -> tuple[float, ...]:
    return one.cpu, float(one.read), float(one.written), float(one.sent), float(one.received)


def _names(readings: Sequence[Reading], roles: Mapping[int, str]) -> dict[int, str]:
    """Return each process's name: its role, else after its nearest ancestor that has one."""
    parents: dict[int, int] = {}
    programs: dict[int, str] = {}
    for one in (process for reading in readings for process in reading.processes):
        parents.setdefault(one.pid, one.parent)  # an orphan's later parent is nobody
        programs[one.pid] = one.program  # a fork becomes what it executes

    def name(pid: int) -> str:
        above = pid
        while above not in roles and above in parents:
            above = parents[above]
        role = roles.get(above, "others")
        return role if above == pid else f"{role}: {programs[pid].rstrip('0123456789.')}"

    return {pid: name(pid) for pid in parents}


def _metrics(metrics: Mapping[str, Any], began: float) -> dict[str, Any]:
    """Return the series of Prometheus that vary, the same step for all."""
    every, step = [*metrics.get("series", ())], float(metrics.get("step", 1.0))
    moments = sorted({float(moment) for one in every for moment, _value in one["values"]})
    varying = [one for one in every if len({value for _moment, value in one["values"]}) > 1]
    chosen = sorted(varying, key=lambda one: -len({value for _moment, value in one["values"]}))[:SERIES]
    several = _step(len(moments), len(chosen))
    return {
        "begin": round(moments[0] - began, 1) if moments else 0.0,
        "step": step * several,
        "left_out": len(every) - len(chosen),
        "series": [_drawn(one, moments, several) for one in chosen],
    }


def _drawn(one: Mapping[str, Any], moments: Sequence[float], step: int) -> dict[str, Any]:
    labels = {
        key: value for key, value in one["metric"].items() if key not in ("__name__", "job", "instance")
    }
    there = {float(moment): float(value) for moment, value in one["values"] if isfinite(float(value))}
    last = [
        _last([there.get(moment) for moment in moments[at : at + step]])
        for at in range(0, len(moments), step)
    ]
    return {"name": one["metric"]["__name__"], "labels": labels, "values": last}


def _last(values: Sequence[float | None]) -> float | None:
    """Return the last of *values* that is there: of counters, unlike a mean, it stays one."""
    return next((rounded(value) for value in reversed(values) if value is not None), None)


def thinned(values: Sequence[float | None], step: int) -> Values:
    """Return means over each *step* of *values*; null where none is there."""
    parts = [
        [value for value in values[at : at + step] if value is not None] for at in range(0, len(values), step)
    ]
    return [rounded(sum(part) / len(part)) if part else None for part in parts]
