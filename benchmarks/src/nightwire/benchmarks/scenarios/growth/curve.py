"""A curve: a cost at counts that are ten times as large each, beside raw librdkafka."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nightwire.benchmarks import Context, Experiment, Figures, Kind, Sample, Series
from nightwire.benchmarks.model.drawing import OWNERS, figure_line, plot
from nightwire.benchmarks.model.sample import values_of
from nightwire.benchmarks.model.statistics import median

LEAST = 2
"""Points that a slope wants."""


@dataclass(frozen=True)
class Cost:
    """What alerts (or events) took together.

    Attributes:
        alerts: How many.
        seconds: On the clock. [s]
        cpu: CPU time of what handled them [s]; 0 where it is not known.
    """

    alerts: int
    seconds: float
    cpu: float = 0.0


QUANTITIES: Mapping[str, tuple[str, Callable[[Cost], float]]] = {
    "": ("time", lambda one: 1e6 * one.seconds / one.alerts),
    "cpu_": ("CPU time", lambda one: 1e6 * one.cpu / one.alerts),
}
"""Words, and the value for each alert [µs] (0: not known), by what the figures are called."""


class Curve(Experiment):
    """Points of one curve, all of them in each run."""

    axis = ""
    """What is counted, as it is in the names of figures."""
    whole = False
    """Whether alerts are counted: then all together grow linearly, not each."""

    def __init__(self, context: Context, points: Sequence[int]) -> None:
        self.name, self._context, self._points = self.axis, context, points

    @abstractmethod
    def cost(self, kind: Kind, count: int) -> Cost | None:
        """Measure one point; None where there is nothing to compare with."""

    def run_once(self, kind: Kind) -> Figures:
        """Measure all points, and the growth of ours; the baseline's exponents are in `note`."""
        costs: dict[int, Cost] = {}
        for count in self._points:
            self._context.say(f"{kind.value}: {count:,} {self.axis}")
            if (cost := self.cost(kind, count)) is not None:
                costs[count] = cost
        found = figures(self.axis, costs)
        return found | (self._exponents(found) if kind is Kind.SUBJECT else {})

    def note(self, samples: Sequence[Sample]) -> str:
        """Return the exponents of the baseline's growth in words; empty where there are none."""
        names = [f"{self.axis}_{count}_{name}us" for count in self._points for name in QUANTITIES]
        values = {name: [*values_of(samples, name, Kind.BASELINE).values()] for name in names}
        slopes = self._exponents({name: median(some) for name, some in values.items() if some})
        words = [
            f"{words} {slopes[key]:.2f}"
            for name, (words, _) in QUANTITIES.items()
            if (key := f"{self.axis}_{name}exponent") in slopes
        ]
        return f"{self.axis} ({', '.join(words)})" if words else ""

    def drawings(self, samples: Sequence[Sample]) -> Iterator[Series]:
        """Yield time and CPU time of each alert over the count, of two points or more."""
        for name, (words, _) in QUANTITIES.items():
            lines = [
                figure_line(
                    owner,
                    [(count, f"{self.axis}_{count}_{name}us", kind) for count in self._points],
                    samples,
                )
                for kind, owner in OWNERS.items()
            ]
            title, enough = (
                f"Growth with {self.axis}: {words} of one",
                [n for n in lines if len(n.x) >= LEAST],
            )
            yield from plot(title, (self.axis, f"{words} [µs]"), enough)

    def _exponents(self, found: Figures) -> Figures:
        return exponents(self.axis, self._points, found, whole=self.whole)


def figures(axis: str, costs: Mapping[int, Cost]) -> Figures:
    """Return the figures of the points of a curve whose *costs* by the count are known."""
    return {
        f"{axis}_{count}_{name}us": cost
        for count, one in costs.items()
        for name, (_, value) in QUANTITIES.items()
        if (cost := value(one)) > 0
    }


def exponents(axis: str, points: Iterable[int], found: Figures, *, whole: bool) -> Figures:
    """Return the exponents of a curve's growth, as figures.

    Args:
        axis: What is counted.
        points: Counts.
        found: The figures of points.
        whole: Whether the exponent is that of all alerts together, not of each.
    """
    slopes: Figures = {}
    for name in QUANTITIES:
        costs = {count: found.get(f"{axis}_{count}_{name}us", 0.0) for count in points}
        slope = exponent({count: cost * (count if whole else 1) for count, cost in costs.items()})
        if slope is not None:
            slopes[f"{axis}_{name}exponent"] = slope
    return slopes


def exponent(costs: Mapping[int, float]) -> float | None:
    """Return the slope of the straight line through the logarithms of counts and costs.

    1 is linear: ten times as many cost ten times as much.  None where fewer than two costs are
    above 0.
    """
    known = {count: cost for count, cost in costs.items() if cost > 0}
    if len(known) < LEAST:
        return None
    slope, _height = np.polyfit(np.log([*known]), np.log([*known.values()]), 1)
    return float(slope)
