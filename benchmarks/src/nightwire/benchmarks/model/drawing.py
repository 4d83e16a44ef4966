"""Series that several scenarios draw: lines through figures, and distributions of delays.  Pure."""

from collections.abc import Iterable, Mapping, Sequence

from nightwire.benchmarks.model.sample import Kind, Sample, values_of
from nightwire.benchmarks.model.scenario import Line, Series
from nightwire.benchmarks.model.statistics import median, quantile, rounded

PlotPoint = tuple[float | str, str, Kind]
"""A place on the horizontal axis (or the figure that has it), a figure, and whose it is."""
OWNERS = {Kind.SUBJECT: "nightwire", Kind.BASELINE: "raw librdkafka"}


def figure_line(name: str, points: Iterable[PlotPoint], samples: Sequence[Sample]) -> Line:
    """Return the medians of figures over their places; what was not measured is left out."""
    found: dict[float, list[float]] = {}
    for place, figure, kind in points:
        if values := [*values_of(samples, figure, kind).values()]:
            at = place
            if isinstance(at, str):
                at = rounded(median([*values_of(samples, at, kind).values()]))
            found.setdefault(at, []).extend(values)
    return sorted_line(name, {at: median(values) for at, values in found.items()})


def sorted_line(name: str, values: Mapping[float, float]) -> Line:
    """Return the line through *values*, by their places."""
    return Line(name, sorted(values), [rounded(values[at]) for at in sorted(values)])


def plot(title: str, axes: tuple[str, str], lines: Iterable[Line], *, log: str = "xy") -> list[Series]:
    """Return the plot of those of *lines* that have points; none where no line has any.

    Args:
        title: What it shows.
        axes: What is drawn along and upwards.
        lines: The lines.
        log: Which of the axes ``x`` and ``y`` are logarithmic.
    """
    drawn = [one for one in lines if one.x]
    return [Series(title, *axes, drawn, log_x="x" in log, log_y="y" in log)] if drawn else []


def distribution(delays: Mapping[str, Sequence[float]]) -> Series:
    """Return the share of alerts that had arrived after each delay, as 200 points a line."""
    shares = [number / 199 for number in range(200)]
    lines = [
        Line(
            name,
            [round(quantile(values, share) * 1e3, 3) for share in shares],
            [round(share, 4) for share in shares],
        )
        for name, values in delays.items()
    ]
    return Series("Delay of an alert, from when it was due", "delay [ms]", "share arrived", lines, log_x=True)
