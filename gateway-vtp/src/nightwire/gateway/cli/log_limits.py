"""A log that no peer can fill: so many lines of a kind a minute, then a count of the rest."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

MAX_LINES = 30
"""Lines of one kind within one interval."""
INTERVAL = 60.0  # [s]


@dataclass
class _Kind:
    since: float
    written: int = 0
    left_out: int = 0


class RateLimitFilter(logging.Filter):
    """Let so many lines of a kind pass; the first of the next interval says how many were left out.

    A kind is a logger and a text before its arguments are put in, so peers cannot make new ones.

    Args:
        clock: Any clock that only goes forward. [s]
        most: Lines of one kind within one interval.
        interval: Its length. [s]
    """

    def __init__(
        self, clock: Callable[[], float], *, most: int = MAX_LINES, interval: float = INTERVAL
    ) -> None:
        super().__init__()
        self._clock, self._most, self._interval = clock, most, interval
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether *record* is written."""
        key, now = (record.name, str(record.msg)), self._clock()
        kind = self._kinds.setdefault(key, _Kind(now))
        if now - kind.since >= self._interval:
            if kind.left_out:
                record.msg = f"{record.msg} (and {kind.left_out} more like this, not written)"
            self._kinds[key] = kind = _Kind(now)
        kind.written += 1
        if kind.written > self._most:
            kind.left_out += 1
            return False
        return True
