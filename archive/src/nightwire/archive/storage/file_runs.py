"""Which files of a table are joined: runs of small ones that follow each other.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

FILE_SIZE = 512 << 20
"""Size at which compaction begins another file. [byte]"""

File = Mapping[str, Any]
"""A file as the table's log has it: ``size_bytes``, ``partition.…``, ``min.…``, ``max.…``."""


@dataclass(frozen=True)
class Run:
    """Files that are to be one.

    Attributes:
        predicate: SQL that holds for their rows, and for hardly any others.
        mean: Mean size of a row. [byte]
    """

    predicate: str
    mean: int


def runs(files: Any, folders: Sequence[str], follows: str, least: int) -> Iterator[Run]:
    """Yield the runs that are worth joining.

    A file that is longer than all that follow it stays as it is, so that no row is written anew
    more often than its file doubles.

    Args:
        files: All of a table, an Arrow table.
        folders: Columns that are folders.
        follows: Column by whose least value files follow each other.
        least: How many files are worth joining.
    """
    parts = [f"partition.{name}" for name in folders]

    def folder(one: File) -> list[str]:
        return [str(one[part]) for part in parts]

    def place(one: File) -> tuple[Any, ...]:
        begin = one.get(f"min.{follows}")
        return folder(one), begin is None, begin

    for of, some in groupby(sorted(files.to_pylist(), key=place), key=folder):
        within = [f"{name} = '{value}'" for name, value in zip(folders, of, strict=True)]
        for run in _consecutive(some):
            while run and run[0]["size_bytes"] > sum(one["size_bytes"] for one in run[1:]):
                del run[0]
            if len(run) >= least:
                yield Run(" AND ".join([*within, *_bounds(run, follows)]), _mean(run))


def _consecutive(files: Iterator[File]) -> Iterator[list[File]]:
    """Yield lists of files that have one file's size together."""
    run: list[File] = []
    for one in files:
        if run and sum(other["size_bytes"] for other in run) + one["size_bytes"] > FILE_SIZE:
            yield run
            run = []
        run.append(one)
    yield run


def _bounds(run: Sequence[File], column: str) -> list[str]:
    """Return what bounds *column* to a run; nothing where the log does not tell of each file."""
    known: list[Any] = [[one.get(f"{end}.{column}") for one in run] for end in ("min", "max")]
    least, greatest = known
    if None in least or None in greatest:
        return []
    return [f"\"{column}\" >= '{min(least)}'", f"\"{column}\" <= '{max(greatest)}'"]


def _mean(run: Sequence[File]) -> int:
    size, rows = (sum(one[name] or 0 for one in run) for name in ("size_bytes", "num_records"))
    return int(size // max(1, rows))
