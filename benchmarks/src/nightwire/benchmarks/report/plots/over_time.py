"""Plots of what processes took over time, as the recorder kept it in a result."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from nightwire.benchmarks.report.content.formatting import Result
from nightwire.benchmarks.report.content.resource_use import over_time, thinned
from nightwire.benchmarks.report.plots.style import COLOURS, DASHES, WIDTH, styled, svg

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
    with styled():
        figure = Figure(figsize=(WIDTH, 2.4 + 0.17 * -(-len(lines) // 2)), layout="constrained")
        axes = figure.subplots()
        for place, (role, points) in enumerate(lines.items()):
            style = DASHES[place % len(DASHES)]
            axes.plot(*zip(*points, strict=True), style, color=COLOURS[place], linewidth=1.1, label=role)
        axes.set_xlabel("time [s]")
        axes.set_ylabel(y)
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside lower left", fontsize=8.5, ncols=2)
        return svg(figure, y)
