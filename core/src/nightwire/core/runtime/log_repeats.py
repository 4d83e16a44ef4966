"""Log lines of one kind are told a few times, then once a minute with how many were left out."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

FIRST = 10
"""How many lines of a kind are written one by one, until it is silent for `INTERVAL`."""

INTERVAL = 60.0
"""Time between the lines of a kind after those. [s]"""


@dataclass
class _Repeats:
    count: int = 0
    came: float = float("-inf")
    written: float = float("-inf")
    left_out: int = 0
    last: logging.LogRecord | None = None


class AggregatingHandler(logging.StreamHandler[TextIO]):
    """Writes warnings and errors that repeat themselves seldom; the kind is the message's template.

    Args:
        stream: Where to; by default standard error.
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock, self._kinds = clock, dict[tuple[str, str], _Repeats]()

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*, or count it."""
        if record.levelno >= logging.WARNING:
            repeats = self._kinds.setdefault((record.name, str(record.msg)), _Repeats())
            now = self._clock()
            repeats.count = 1 if now - repeats.came > INTERVAL else repeats.count + 1
            repeats.came = now
            if repeats.count > FIRST and now - repeats.written < INTERVAL:
                repeats.left_out, repeats.last = repeats.left_out + 1, record
                return
            self._tell(repeats)
            repeats.written = now
        super().emit(record)

    def close(self) -> None:
        """Tell what was left out last."""
        for repeats in self._kinds.values():
            self._tell(repeats)
        super().close()

    def _tell(self, repeats: _Repeats) -> None:
        if (last := repeats.last) is not None:
            words = ("%d more like this, the last: %s", (repeats.left_out, last.getMessage()))
            super().emit(logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, *words, None))
        repeats.left_out, repeats.last = 0, None
