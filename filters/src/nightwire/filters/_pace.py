"""How large the next batch may be: as large as can be had within a time, for each batch costs one of its own.

Pure but for the clock that it is given.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

TARGET = 2.5
"""What a batch may take: a new filter waits for the end of the running one. [s]"""

LEAST = 500
"""Records that a batch may have in any case."""

FIRST = 2500
"""Records of the first batch, of which nothing is known."""

STEP = 2.0
"""From one batch to the next the limit grows or shrinks at most so many times."""


@dataclass
class Pace:
    """Learns from how long batches take, from when one is planned to when the next is asked for.

    Args:
        target: What a batch may take. [s]
        clock: Tells the time. [s]
    """

    target: float = TARGET
    clock: Callable[[], float] = time.monotonic
    _limit: int = FIRST
    _planned: tuple[int, float] | None = None

    def limit(self, most: int | None) -> int | None:
        """Return how many records the next batch may have, *most* at the most; None: as many as there are."""
        if most is None:
            return None
        if self._planned is not None:
            self._learn(*self._planned)
            self._planned = None
        return min(most, self._limit)

    def planned(self, records: int) -> None:
        """Note that a batch of so many *records* begins now."""
        self._planned = (records, self.clock())

    def _learn(self, records: int, began: float) -> None:
        """Take in how long a batch took; a small one says little of how long a large one would take."""
        change = self.target / max(self.clock() - began, 1e-3)
        if change < 1 or 2 * records >= self._limit:
            self._limit = max(LEAST, round(self._limit * min(STEP, max(1 / STEP, change))))
