"""Refuse to start what the machine cannot finish: disk, memory, time."""

import shutil
from pathlib import Path

import psutil

from nightwire.benchmarks import Needs

GB = 1e9
RESERVE = 2 * 10**9
"""Disk that is left to others. [byte]"""


class RefusedError(Exception):
    """The benchmark does not start; the message says what is lacking."""


def shortages(needs: Needs, have: Needs, *, where: str = "the disk") -> list[str]:
    """Return what *needs* exceeds *have* in (its ``seconds``: the limit), in plain words."""
    lacking = []
    if needs.disk + RESERVE > have.disk:
        lacking.append(
            f"needs {(needs.disk + RESERVE) / GB:.1f} GB on {where}, has {have.disk / GB:.1f}: "
            "free some, set TMPDIR to a larger disk, or take fewer --alerts"
        )
    if needs.memory > have.memory:
        lacking.append(
            f"needs {needs.memory / GB:.1f} GB of memory, has {have.memory / GB:.1f}: take fewer --alerts"
        )
    if needs.seconds > have.seconds:
        lacking.append(
            f"takes about {minutes(needs.seconds)}, above the limit of {minutes(have.seconds)}: "
            "take fewer --alerts or --pairs, or raise --time-limit"
        )
    return lacking


def available(folder: Path, time_limit: float) -> Needs:
    """Return what there is: disk under *folder* and memory [byte], and *time_limit* [s]."""
    return Needs(shutil.disk_usage(folder).free, psutil.virtual_memory().available, time_limit)


def check_resources(name: str, needs: Needs, folder: Path, time_limit: float) -> None:
    """Raise where scenario *name* cannot run here.

    Raises:
        RefusedError: With everything that is lacking.
    """
    if lacking := shortages(needs, available(folder, time_limit), where=str(folder)):
        raise RefusedError(f"{name} does not start: it " + "; and it ".join(lacking))


def minutes(seconds: float) -> str:
    """Return a time for people."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
