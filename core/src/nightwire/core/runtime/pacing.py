"""The time as nightwire's records hold it."""

import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from statistics import median


def now_ms() -> int:
    """Return the time. [ms since 1970, UTC]"""
    return time.time_ns() // 1_000_000


Idle = Callable[[float], bool]
"""Waits at most so long [s], and may return early; returns whether it is time to leave."""


def on_time(
    dues: Iterable[float], *, clock: Callable[[], float], idle: Idle
) -> Iterator[tuple[float, float]]:
    """Yield when each thing is due and by how much it is late [s]: none before it is due, late ones at once.

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
        """The greatest delay; 0 where there is none. [s]"""
        return max(self._delays, default=0.0)

    @property
    def median(self) -> float:
        """The delay of the middle one; 0 where there is none. [s]"""
        return median(self._delays) if self._delays else 0.0
