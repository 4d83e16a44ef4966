"""When things are done: the time as records hold it, schedules, backoff, rate-limited logging."""

import random
import time
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator
from statistics import median


def now_ms() -> int:
    """Return the time. [ms since 1970, UTC]"""
    return time.time_ns() // 1_000_000


Idle = Callable[[float], bool]
"""Waits at most so long [s], and may return early; returns whether it is time to leave."""


def on_time(
    dues: Iterable[float], *, clock: Callable[[], float], idle: Idle
) -> Iterator[tuple[float, float]]:
    """Yield the due time and the delay [s] of each thing: none early, late ones at once.

    Ends early when *idle* says that it is time to leave.

    Args:
        dues: When each is due, in order. [s, the clock's]
        clock: The present. [s, any steady clock]
        idle: What to do until the next is due.
    """
    for due in dues:
        while (left := due - clock()) > 0.0:
            if idle(left):
                return
        yield due, -left


class Lateness:
    """By how much things were late. [s]"""

    def __init__(self) -> None:
        self._delays = array("d")

    def note(self, delay: float) -> None:
        """Count one that was late by *delay* [s]."""
        self._delays.append(delay)

    @property
    def greatest(self) -> float:
        """The greatest delay; 0 without any. [s]"""
        return max(self._delays, default=0.0)

    @property
    def median(self) -> float:
        """The median delay; 0 without any. [s]"""
        return median(self._delays) if self._delays else 0.0


class Backoff:
    """The pauses between attempts at one thing.

    Args:
        first: The first pause. [s]
        longest: The longest one. [s]
        growth: What each pause is multiplied by.
        spread: Each is multiplied by a random number between these two, so that many clients that
            were cut off together do not come back together.
    """

    def __init__(
        self,
        first: float = 0.5,
        longest: float = 10.0,
        *,
        growth: float = 2.0,
        spread: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        self._first, self._longest, self._growth, self._spread = first, longest, growth, spread
        self._pause = first

    def next(self) -> float:
        """Return how long to pause before the next attempt. [s]"""
        pause = self._pause
        self._pause = min(pause * self._growth, self._longest)
        return pause * random.uniform(*self._spread)  # noqa: S311  (spreads attempts)

    def reset(self) -> None:
        """Begin again with the first pause, after an attempt that succeeded."""
        self._pause = self._first


class LogLimiter:
    """Tells whether a message of some kind may be logged now.

    Args:
        interval: Least time between two messages of one kind. [s]
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(self, interval: float = 60.0, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval, self._clock = interval, clock
        self._logged: dict[Hashable, float] = {}

    def allows(self, kind: Hashable = None) -> bool:
        """Return whether *kind* was not logged within the interval, and note it as logged now."""
        now = self._clock()
        if now - self._logged.get(kind, float("-inf")) < self._interval:
            return False
        self._logged[kind] = now
        return True
