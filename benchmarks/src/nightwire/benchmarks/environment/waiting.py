"""Waiting for what a run needs, with an end."""

import time
from collections.abc import Callable

from nightwire.benchmarks import RunError


def until(holds: Callable[[], object], what: str, *, patience: float, pause: float = 0.1) -> float:
    """Ask each *pause* [s] until something *holds*; return how long it took. [s]

    Raises:
        RunError: It does not within *patience* [s]; the message says *what*.
    """
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > patience:
            raise RunError(f"{what} within {patience:g} s")
        time.sleep(pause)
    return time.monotonic() - began
