"""A plot of published points and our lines, on the axes of the paper."""

from functools import cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nightwire.benchmarks.report.content.publications import Published
from nightwire.benchmarks.report.content.published_comparison import PlotLine
from nightwire.benchmarks.report.plots.style import COLOURS, DASHES, INK, MARKERS, WIDTH, decades, styled, svg

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
    with styled():
        figure = Figure(figsize=(WIDTH, HEIGHT + PER_NAME * len(lines)), layout="constrained")
        axes = figure.subplots()
        for one in lines:
            axes.plot(one.line.x, one.line.y, label=one.line.name, **_look(one))
        _scale(axes, entry)
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


def _scale(axes: Axes, entry: Published) -> None:
    axes.set_xlabel(entry.x)
    axes.set_ylabel(entry.y)
    axes.set_xscale("log" if entry.log_x else "linear")
    axes.set_yscale("log" if entry.log_y else "linear")
    if not entry.log_y:
        axes.set_ylim(0, 1.08 * axes.dataLim.ymax)
    for axis, log in ((axes.xaxis, entry.log_x), (axes.yaxis, entry.log_y)):
        if log:
            decades(axis)
