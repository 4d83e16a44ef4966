"""An open-loop generator: alerts are due when the schedule says so, whether or not we keep up.

A closed loop waits for itself: when the system stalls, it sends later, and the stall is counted once
instead of for every alert that was due meanwhile.  Here the delay of an alert counts from when it was *due*,
and the schedule is never moved.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import floor


@dataclass(frozen=True)
class Schedule:
    """Alerts at a steady rate.

    Attributes:
        start: When the first is due. [s, any steady clock]
        rate: How many a second.
        count: How many in all.
    """

    start: float
    rate: float
    count: int

    def due(self, number: int) -> float:
        """Return when alert *number* (from 0) is due. [s]"""
        return self.start + number / self.rate

    def due_by(self, now: float) -> int:
        """Return how many alerts are due at *now* [s] or earlier."""
        if now < self.start:
            return 0
        return min(self.count, floor((now - self.start) * self.rate + 1e-9) + 1)


@dataclass
class Pacer:
    """Walks along a schedule.

    Attributes:
        schedule: When each alert is due.
        clock: The present. [s]
        idle: Waits at most so long [s]; may do other work meanwhile, and may return early.
        behind: By how much the generator itself was late at worst. [s]
    """

    schedule: Schedule
    clock: Callable[[], float]
    idle: Callable[[float], object]
    behind: float = 0.0

    def __iter__(self) -> Iterator[tuple[int, float]]:
        """Yield number and due time [s] of each alert, not before it is due; late ones at once."""
        for number in range(self.schedule.count):
            due = self.schedule.due(number)
            while (left := due - self.clock()) > 0.0:
                self.idle(left)
            self.behind = max(self.behind, -left)
            yield number, due
