"""How a cost grows with a count.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

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
