"""Pauses between attempts that grow, up to a longest one."""

import random


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
        first: float,
        longest: float,
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
