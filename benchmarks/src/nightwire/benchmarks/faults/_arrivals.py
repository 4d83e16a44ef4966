"""Who reads writes down what came, line by line, so that it is known whoever is killed, and when."""

import time
from pathlib import Path


class Notes:
    """A file to which lines are appended; each is there at once, whatever becomes of the process.

    Args:
        path: The file; another process of the same reader may have begun it.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def note(self, name: str) -> None:
        """Write down that *name* came now."""
        self._file.write(f"{time.monotonic()}\t{name}\n".encode())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_notes(path: Path) -> list[tuple[str, float]]:
    """Return what came, and when [s, monotonic]; a line that is being written is left out."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [(name, float(moment)) for moment, name in (line.split("\t", 1) for line in lines)]
