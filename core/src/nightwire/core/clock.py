"""The time as nightwire's records hold it."""

import time


def now_ms() -> int:
    """Return the time. [ms since 1970, UTC]"""
    return time.time_ns() // 1_000_000
