"""Plots: of one result, over time, and beside what others have published."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from nightwire.benchmarks.harness.result_files import samples_of
from nightwire.benchmarks.model.sample import figure_pairs
from nightwire.benchmarks.model.statistics import ratios
from nightwire.benchmarks.report.content.formatting import Entry, Result, advantage
from nightwire.benchmarks.report.content.publications import Published
from nightwire.benchmarks.report.content.published_comparison import PlotLine
from nightwire.benchmarks.report.content.resource_use import over_time, thinned

QUANTITIES = (
    ("cpu", "CPU", "cores", 1.0),
    ("memory", "resident memory", "MB", 1e-6),
    ("disk_written", "written to disks", "MB/s", 1e-6),
    ("network_received", "received over TCP", "MB/s", 1e-6),
)
"""What is drawn, its name, its unit there, and the scale to that."""
ROLES = 6
"""Lines of a plot: those that took most."""
POINTS = 150
"""Of a line, at most."""


def time_plots(result: Result) -> Iterator[tuple[str, str]]:
    """Yield plots and what they show; none where nothing was recorded."""
    if "recorded" not in result:
        return
    roles = list(dict.fromkeys(one["role"].partition(": ")[0] for one in result["recorded"]["processes"]))
    for quantity, name, unit, scale in QUANTITIES:
        lines = {role: over_time(result, role, quantity) for role in roles}
        taken = {role: sum(y for _x, y in points) for role, points in lines.items()}
        chosen = sorted((role for role in roles if taken[role] > 0), key=lambda one: -taken[one])[:ROLES]
        if chosen:
            drawn = {role: [(x, y * scale) for x, y in thinned(lines[role], POINTS)] for role in chosen}
            yield _plot(drawn, f"{name} [{unit}]"), f"{name[0].upper()}{name[1:]}, over all runs."


def _plot(lines: dict[str, list[tuple[float, float]]], y: str) -> str:
    with _drawing(2.4 + 0.17 * -(-len(lines) // 2)) as (figure, axes):
        for place, (role, points) in enumerate(lines.items()):
            style = DASHES[place % len(DASHES)]
            axes.plot(*zip(*points, strict=True), style, color=COLOURS[place], linewidth=1.1, label=role)
        axes.set_xlabel("time [s]")
        axes.set_ylabel(y)
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside lower left", fontsize=8.5, ncols=2)
        return svg(figure, y)


HEIGHT = 2.7
PER_NAME = 0.17
"""Of a plot without its legend, and of a line of that. [in]"""


@cache
def published_plot(entry: Published, lines: tuple[PlotLine, ...]) -> str | None:
    """Draw theirs in black, ours in colours, and what ours was measured beside in the same, dashed.

    None where the entry has no axes, or no line.
    """
    if not entry.x or not lines:
        return None
    with _drawing(HEIGHT + PER_NAME * len(lines)) as (figure, axes):
        for one in lines:
            axes.plot(one.line.x, one.line.y, label=one.line.name, **_look(one))
        _scale(axes, (entry.x, entry.y), log_x=entry.log_x, log_y=entry.log_y)
        figure.legend(loc="outside lower left", fontsize=9.2, ncols=1)
        return svg(figure, f"{entry.number}: {entry.title}")


def _look(one: PlotLine) -> dict[str, Any]:
    """Return how a line is drawn: each side in a way that is told apart in grey as well."""
    colour, marker = COLOURS[one.place % len(COLOURS)], MARKERS[one.place % len(MARKERS)]
    if one.side == "theirs":
        dash = DASHES[(one.place + 1) % len(DASHES)]
        return {"color": INK, "linestyle": dash, "linewidth": 0.8, "marker": marker, "markersize": 5.5}
    if one.side == "baseline":
        hollow = {"marker": marker, "markersize": 6, "markerfacecolor": "white"}
        return {"color": colour, "linestyle": "--", "linewidth": 1.2, "zorder": 3} | hollow
    return {"color": colour, "marker": ".", "markersize": 8, "linewidth": 1.8, "zorder": 4}


def _scale(axes: Axes, names: tuple[str, str], *, log_x: bool, log_y: bool) -> None:
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    if not log_y and axes.dataLim.ymax > 0:
        axes.set_ylim(0, 1.08 * axes.dataLim.ymax)
    for axis, log in ((axes.xaxis, log_x), (axes.yaxis, log_y)):
        if log:
            decades(axis)


WIDTH = 4.1  # [in]
STYLE: dict[str, Any] = {
    "font.size": 10,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.edgecolor": "#8a929c",
    "text.color": "#1c2430",
    "axes.labelcolor": "#1c2430",
    "xtick.color": "#4a5462",
    "ytick.color": "#4a5462",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes a third of the room
    "svg.hashsalt": "nightwire",
}
COLOURS = ("#1f5fa8", "#d2691e", "#2e8b57", "#8a4fa3", "#b8860b", "#5f6b7a", "#c2385b", "#3aa6b9", "#7a9a3a")
"""Told apart also by those who do not see red and green, and in grey."""
INK = "#1c2430"
MARKERS = "osD^vP"
DASHES = ("-", "--", "-.", ":")


@contextmanager
def _drawing(height: float) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure of that height [in] and its axes, in the report's style."""
    with mpl.rc_context(cast("Any", STYLE)):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, figure.subplots()


def decades(axis: Axis) -> None:
    """Write 1, 2, 5, 10 … along a logarithmic axis that is short enough for it, else decades."""
    low, high = sorted(axis.get_view_interval())
    steps = (1.0, 2.0, 5.0) if high < 1_000 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(lambda value, _place: f"{value:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def svg(figure: Figure, title: str) -> str:
    """Return *figure* as an ``<svg>`` element that scales with the page and says what it shows."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)  # a hundredth of a point will do
    text = re.sub(r"font-family: [^;\"]+; ", "", text)  # the page's own
    words = f'role="img" aria-label="{escape(title)}" preserveAspectRatio="xMidYMid meet"'
    return re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', rf'<svg viewBox="\1" {words}>', text, count=1)


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
    with _drawing(0.9 + 0.42 * len(entries)) as (figure, axes):
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
    return ratios(*figure_pairs(samples_of(result), name))


def series_plot(series: dict[str, Any]) -> str:
    """Draw one of a result's series."""
    with _drawing(3.4) as (figure, axes):
        for number, line in enumerate(series["lines"]):
            style = DASHES[number % len(DASHES)]
            marker = MARKERS[number % len(MARKERS)] if len(line["x"]) <= FEW else ""
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(
                line["x"], line["y"], style, color=colour, marker=marker, markersize=5, label=line["name"]
            )
        _scale(axes, (series["x"], series["y"]), log_x=series["log_x"], log_y=series["log_y"])
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
    with _drawing(1.5 + 0.45 * len(experiments) + 0.17 * len(names)) as (figure, axes):
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
