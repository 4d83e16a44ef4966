"""A reader's file of what came and when: it survives the reader's being killed."""

import time
from collections.abc import Callable
from pathlib import Path

POLL = 0.1
"""Time between two looks at what came. [s]"""

Arrivals = list[tuple[str, float]]
"""What came, and when. [s, monotonic]"""


class ArrivalLog:
    """A file to which lines are appended; each is there at once, whatever becomes of the process.

    Args:
        path: The file; an earlier process of the same reader may have begun it.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def note(self, name: str) -> None:
        """Write down that *name* came now."""
        self._file.write(f"{time.monotonic()}\t{name}\n".encode())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_arrivals(path: Path) -> Arrivals:
    """Return what came; a line that is being written is left out."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [(name, float(moment)) for moment, name in (line.split("\t", 1) for line in lines)]


def await_arrivals(path: Path, enough: Callable[[Arrivals], bool], patience: float) -> Arrivals:
    """Return what came, once it is *enough*, or once nothing more has come for *patience*. [s]"""
    last, known = time.monotonic(), -1
    while not enough(found := read_arrivals(path)):
        if len(found) > known:
            last, known = time.monotonic(), len(found)
        elif time.monotonic() - last > patience:
            break
        time.sleep(POLL)
    return found
