"""How much of each alert goes over a link, by the age of what was delivered.  Pure.

Ages are by the clock of who sends, so that no other clock matters.
"""

from dataclasses import dataclass, field
from enum import IntEnum

LIMIT = 10.0
"""Age above which less is sent. [s]"""
MOST_PATIENCE = 4
"""A rung that was left at once is tried again after so many limits at most."""


class Level(IntEnum):
    """The rungs of the ladder, from all of each alert to a few alerts."""

    FULL = 0
    STAMPLESS = 1
    LITE = 2
    SAMPLE = 3


@dataclass
class Ladder:
    """Where a link stands: a rung down while ages are too great, one up when they stay small.

    Attributes:
        limit: Age above which less is sent. [s]
        level: What is sent now.
    """

    limit: float = LIMIT
    level: Level = Level.FULL
    _changed: float = field(default=float("-inf"), repr=False)
    _calm: float | None = field(default=None, repr=False)
    _patience: float = field(default=1.0, repr=False)
    _rose: bool = field(default=False, repr=False)

    def see(self, age: float, now: float) -> Level:
        """Return what is sent once something of *age* was delivered, or waits. [s]

        Half a limit passes before the next rung down: the last one is given time.  Ages below half
        of it last a limit before one up; longer where that was wrong the last time.
        """
        if age > self.limit:
            self._calm = None
            if self.level < Level.SAMPLE and now - self._changed >= self.limit / 2:
                if self._rose:
                    soon = now - self._changed < 2 * self.limit
                    self._patience = min(2 * self._patience, MOST_PATIENCE) if soon else 1.0
                self._step(1, now)
        elif age > self.limit / 2 or self.level is Level.FULL:
            self._calm = None
        elif self._calm is None:
            self._calm = now
        elif now - self._calm >= self.limit * self._patience:
            self._step(-1, now)
        return self.level

    def _step(self, by: int, now: float) -> None:
        self.level, self._changed, self._calm = Level(self.level + by), now, None
        self._rose = by < 0
