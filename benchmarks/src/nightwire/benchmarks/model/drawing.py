"""Part."""

from collections.abc import Mapping, Sequence

from nightwire.benchmarks.model.scenario import Line, Series
from nightwire.benchmarks.model.statistics import quantile, rounded


def distribution(delays: Mapping[str, Sequence[float]]) -> Series:
    """Return how large a share of alerts had arrived after which delay, as 200 points a line."""
    shares = [number / 199 for number in range(200)]
    lines = [
        Line(
            name, [round(quantile(values, share) * 1e3, 3) for share in shares], [round(s, 4) for s in shares]
        )
        for name, values in delays.items()
    ]
    return Series("Delay of an alert, from when it was due", "delay [ms]", "share arrived", lines, log_x=True)


def sorted_line(name: str, values: Mapping[int, float]) -> Line:
    """Return the line through *values*, by where they lie."""
    return Line(name, sorted(values), [rounded(values[at]) for at in sorted(values)])
