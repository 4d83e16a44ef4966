"""A limit on the time that one filter may take, by the process's interval timers.

A loop in Python code is interrupted; one inside C code (a giant regular expression, a NumPy call) is
not, until it returns.  Only for the main thread of a process, which Spark's Python workers give us.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PATIENCE = 5.0
"""Wall time allowed per CPU time: a filter that only waits is stopped too, one on a busy machine is not."""

AGAIN = 0.1
"""The timer fires again after this, in case the filter swallowed the first. [s]"""


class TimeLimit(BaseException):
    """The filter took too long.  Not an `Exception`, so that a filter's own ``except`` lets it through."""


def _expired(_number: int, _frame: FrameType | None) -> None:
    raise TimeLimit


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` inside the block after *seconds* of CPU time [s], or five times that by the clock.

    Outside the main thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, _expired) for number in (signal.SIGPROF, signal.SIGALRM)}
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)
        signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE, AGAIN)
        yield
    finally:
        _disarm()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _disarm() -> None:
    """Stop both timers, even where they fire while we do."""
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        try:
            signal.setitimer(timer, 0)
        except TimeLimit:
            signal.setitimer(timer, 0)
