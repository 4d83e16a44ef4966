"""Log messages of one kind at most once in a while: what fails a thousand times is said once."""

import time
from collections.abc import Callable, Hashable


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
