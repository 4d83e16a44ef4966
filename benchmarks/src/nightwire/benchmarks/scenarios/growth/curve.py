"""A curve: the same thing asked at counts that are ten times as large each, beside raw librdkafka."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from nightwire.benchmarks.model.scenario import Context, Experiment, Line, Series
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.statistics import median, rounded

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

    @property
    def us(self) -> float:
        """Time for each. [µs]"""
        return 1e6 * self.seconds / self.alerts

    @property
    def cpu_us(self) -> float:
        """CPU time for each. [µs]"""
        return 1e6 * self.cpu / self.alerts


def exponent(costs: Mapping[int, float]) -> float | None:
    """Return the slope of the straight line through the logarithms of counts and costs, by least squares.

    1 is linear: ten times as many cost ten times as much.  None where fewer than two costs are above 0.
    """
    points = [(log(count), log(cost)) for count, cost in costs.items() if cost > 0]
    if len(points) < LEAST:
        return None
    middle = sum(x for x, _ in points) / len(points)
    height = sum(y for _, y in points) / len(points)
    width = sum((x - middle) ** 2 for x, _ in points)
    return sum((x - middle) * (y - height) for x, y in points) / width


NAMES: Mapping[Kind, str] = {Kind.SUBJECT: "nightwire", Kind.BASELINE: "raw librdkafka"}
QUANTITIES: Mapping[str, tuple[str, Callable[[Cost], float]]] = {
    "": ("time", lambda one: one.us),
    "cpu_": ("CPU time", lambda one: one.cpu_us),
}
"""What is said of each point: words, and its value [µs] (0: not known), by what its figures are called."""


class Curve(Experiment):
    """Points of one curve, all of them in each run.

    Args:
        context: Of the run.
        points: Counts, the smallest first.
    """

    axis = ""
    """What is counted, as it is in the names of figures."""
    whole = False
    """Whether the count is that of the alerts themselves: then all together grow linearly, not each."""

    def __init__(self, context: Context, points: Sequence[int]) -> None:
        self.name, self._context, self._points = self.axis, context, points
        self._book: dict[tuple[Kind, int], list[Cost]] = defaultdict(list)

    @abstractmethod
    def cost(self, kind: Kind, count: int) -> Cost | None:
        """Measure one point; None where there is nothing to compare with."""

    def run_once(self, kind: Kind) -> Figures:
        """Measure all points, and of ours how the costs grow: the baseline's exponents are in `note`."""
        costs: dict[int, Cost] = {}
        for count in self._points:
            self._context.say(f"{kind.value}: {count:,} {self.axis}")
            found = self.cost(kind, count)
            if found is not None:
                costs[count] = found
                self._book[kind, count].append(found)
        grown = exponents(self.axis, costs, whole=self.whole) if kind is Kind.SUBJECT else {}
        return figures(self.axis, costs) | grown

    def note(self) -> str:
        """Return the exponents of the baseline's growth in a few words; empty where there are none."""
        found: dict[int, Cost] = {}
        for count in self._points:
            if some := self._book[Kind.BASELINE, count]:
                found[count] = sorted(some, key=lambda one: one.seconds)[len(some) // 2]
        slopes = exponents(self.axis, found, whole=self.whole)
        named = {words: slopes.get(f"{self.axis}_{name}exponent") for name, (words, _) in QUANTITIES.items()}
        said = [f"{words} {slope:.2f}" for words, slope in named.items() if slope is not None]
        return f"{self.axis} ({', '.join(said)})" if said else ""

    def drawings(self) -> Iterator[Series]:
        """Yield time and CPU time of each alert over the count, where enough points were measured."""
        for words, value in QUANTITIES.values():
            lines = [line for kind in Kind for line in self._lines(kind, value)]
            if lines:
                title = f"Growth with {self.axis}: {words} of one"
                yield Series(title, self.axis, f"{words} [µs]", lines, log_x=True, log_y=True)

    def _lines(self, kind: Kind, value: Callable[[Cost], float]) -> Iterator[Line]:
        measured = {count: found for count in self._points if (found := self._book[kind, count])}
        known = {count: median([value(one) for one in found]) for count, found in measured.items()}
        drawn = {count: rounded(cost) for count, cost in known.items() if cost > 0}
        if len(drawn) >= LEAST:
            yield Line(NAMES[kind], list(drawn), list(drawn.values()))


def figures(axis: str, costs: Mapping[int, Cost]) -> Figures:
    """Return the figures of the points of a curve, *costs* by the count, but for what is not known."""
    return {
        f"{axis}_{count}_{name}us": cost
        for count, one in costs.items()
        for name, (_, value) in QUANTITIES.items()
        if (cost := value(one)) > 0
    }


def exponents(axis: str, costs: Mapping[int, Cost], *, whole: bool) -> Figures:
    """Return the figures of a curve's growth.

    Args:
        axis: What is counted.
        costs: By the count.
        whole: Whether the exponent is that of all alerts together, not of each.
    """
    found: Figures = {}
    for name, (_, value) in QUANTITIES.items():
        slope = exponent({count: value(one) * (count if whole else 1) for count, one in costs.items()})
        if slope is not None:
            found[f"{axis}_{name}exponent"] = slope
    return found
