"""Waiting in tests: until something holds, never for a time."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

import httpx

Found = TypeVar("Found")


def until(
    holds: Callable[[], Found], why: str | Callable[[], str] = "it never did", timeout: float = 120.0,
    *, tick: float = 0.05,
) -> Found:  # fmt: skip
    """Return what *holds* returns once that is true; a page that cannot be reached is no answer.

    Args:
        holds: Asked each *tick* [s]; what costs more CPU than that is asked less often.
        why: What the test says that fails, after *timeout*. [s]
    """
    deadline = time.monotonic() + timeout
    while True:
        before = _cpu()
        try:
            if found := holds():
                return found
        except httpx.TransportError:
            pass
        if time.monotonic() > deadline:
            raise AssertionError(f"after {timeout:g} s: {why if isinstance(why, str) else why()}")
        time.sleep(max(tick, 3 * (_cpu() - before)))  # polling a condition


def _cpu() -> float:
    """Return what this process and its children that ended have taken. [s]"""
    return sum(os.times()[:4])
