"""Plots of one result."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.statistics import ratios
from nightwire.benchmarks.report.content.formatting import Entry, Result, advantage
from nightwire.benchmarks.report.plots.style import COLOURS, DASHES, INK, MARKERS, WIDTH, decades, styled, svg

SMALL = 0.02
"""Share of the largest use of CPU below which a process is in the table only."""
FEW = 20
"""Points of a line up to which each is marked."""
MOST = 20
"""Rows of a plot; it shows what matters most, and the tables have the rest."""


def ratios_plot(result: Result) -> str | None:
    """Draw how many times better figures are than their baselines; None without any.

    Small dots are single pairs.  Where there are too many figures, those of the headline.
    """
    entries = [entry for entry in result["results"] if entry["ratio"]]
    if len(entries) > MOST:
        entries = [entry for entry in entries if entry["headline"]]
    if not entries:
        return None
    with styled():
        figure = Figure(figsize=(WIDTH, 0.9 + 0.42 * len(entries)), layout="constrained")
        axes = figure.subplots()
        for row, entry in enumerate(reversed(entries)):
            dots = [advantage(one, entry["better"]) for one in pair_ratios(result, entry) if one]
            axes.scatter(dots, [row] * len(dots), s=14, color=COLOURS[0], alpha=0.45, linewidths=0)
            axes.scatter(
                [advantage(entry["ratio"], entry["better"])], [row], s=46, color=COLOURS[0], zorder=3
            )
        axes.axvline(1.0, color=INK, linewidth=1)
        axes.set_xscale("log")
        axes.set_yticks(
            range(len(entries)), [_short(entry["name"]) for entry in reversed(entries)], fontsize=8
        )
        axes.set_ylim(-0.6, len(entries) - 0.4)
        decades(axes.xaxis)
        axes.set_xlabel("times better than the baseline (line: equal)")
        return svg(figure, f"How many times better {result['scenario']} is than its baselines")


def pair_ratios(result: Result, entry: Entry) -> list[float]:
    """Return the ratio of each pair; for a share, those of the rates it is made of."""
    name = entry.get("share_of") or entry["name"]
    found: dict[Kind, dict[int, float]] = {kind: {} for kind in Kind}
    for sample in result["samples"]:
        if name in sample["figures"]:
            found[Kind(sample["kind"])][sample["pair"]] = sample["figures"][name]
    return ratios(found[Kind.SUBJECT], found[Kind.BASELINE])


def series_plot(series: dict[str, Any]) -> str:
    """Draw one of a result's series."""
    with styled():
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        axes = figure.subplots()
        for number, line in enumerate(series["lines"]):
            style = DASHES[number % len(DASHES)]
            marker = MARKERS[number % len(MARKERS)] if len(line["x"]) <= FEW else ""
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(
                line["x"], line["y"], style, color=colour, marker=marker, markersize=5, label=line["name"]
            )
        axes.set_xlabel(series["x"])
        axes.set_ylabel(series["y"])
        axes.set_xscale("log" if series["log_x"] else "linear")
        axes.set_yscale("log" if series["log_y"] else "linear")
        if not series["log_y"] and axes.dataLim.ymax > 0:
            axes.set_ylim(0, 1.08 * axes.dataLim.ymax)
        for axis, log in ((axes.xaxis, series["log_x"]), (axes.yaxis, series["log_y"])):
            if log:
                decades(axis)
        if series["lines"]:
            figure.legend(loc="outside lower center", fontsize=8, ncols=1)
        return svg(figure, series["title"])


def processes(result: Result) -> list[tuple[str, str, float, int]]:
    """Return experiment, process, CPU seconds a run of ours (mean) and largest memory [byte]."""
    runs: dict[str, int] = {}
    cpu: dict[tuple[str, str], float] = {}
    rss: dict[tuple[str, str], int] = {}
    for sample in result["samples"]:
        if sample["kind"] != "subject":
            continue
        runs[sample["experiment"]] = runs.get(sample["experiment"], 0) + 1
        for one in sample["processes"]:
            key = (sample["experiment"], one["name"])
            cpu[key] = cpu.get(key, 0.0) + one["cpu_seconds"]
            rss[key] = max(rss.get(key, 0), one["peak_rss_bytes"])
    return [(*key, cpu[key] / runs[key[0]], rss[key]) for key in cpu]


def cpu_plot(result: Result) -> str | None:
    """Draw the CPU time of each process in a run of each experiment; None without processes.

    Where there are too many experiments, those that took most.
    """
    found = processes(result)
    if not found:
        return None
    experiments = largest(found, MOST)
    found = [row for row in found if row[0] in experiments]
    most = max(row[2] for row in found)
    names = sorted({row[1] for row in found if row[2] > SMALL * most})
    used = {(row[0], row[1]): row[2] for row in found}
    with styled():
        figure = Figure(
            figsize=(WIDTH, 1.5 + 0.45 * len(experiments) + 0.17 * len(names)), layout="constrained"
        )
        axes = figure.subplots()
        left = [0.0] * len(experiments)
        for number, name in enumerate(names):
            widths = [used.get((experiment, name), 0.0) for experiment in experiments]
            colour = COLOURS[number % len(COLOURS)]
            axes.barh(experiments, widths, left=left, height=0.6, color=colour, label=name)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("CPU time of one run [s]")
        figure.legend(loc="outside lower center", fontsize=8, ncols=2)
        return svg(figure, "CPU time by process")


def largest(found: Sequence[tuple[str, str, float, int]], most: int) -> list[str]:
    """Return the *most* experiments that took most of the CPU, in the order of their runs."""
    totals: dict[str, float] = {}
    for experiment, _process, seconds, _size in found:
        totals[experiment] = totals.get(experiment, 0.0) + seconds
    chosen = set(sorted(totals, key=lambda name: -totals[name])[:most])
    return [name for name in totals if name in chosen]


def _short(name: str) -> str:
    return name.replace("encode_produce_consume_decode", "visit").replace("_", " ")
