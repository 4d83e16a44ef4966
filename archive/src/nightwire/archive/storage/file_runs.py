"""Which files of a table are joined: runs of small ones that follow each other.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

FILE_SIZE = 512 << 20
"""Size at which compaction begins another file. [byte]"""

File = Mapping[str, Any]
"""A file as the table's log has it: ``size_bytes``; by column ``partition``, ``min``, ``max``."""


def runs(files: Any, folders: Sequence[str], follows: str, least: int) -> Iterator[list[File]]:
    """Yield the runs that are worth joining.

    A file that is longer than all that follow it stays as it is, so that no row is written anew
    more often than its file doubles.

    Args:
        files: All of a table, an Arrow table.
        folders: Columns that are folders.
        follows: Column by whose least value files follow each other.
        least: How many files are worth joining.
    """

    def folder(one: File) -> list[str]:
        return [str(one["partition"][name]) for name in folders]

    def order(one: File) -> tuple[Any, ...]:
        begin = (one.get("min") or {}).get(follows)
        return folder(one), begin is None, begin

    for _, some in groupby(sorted(files.to_pylist(), key=order), key=folder):
        for run in _consecutive(some):
            while run and run[0]["size_bytes"] > sum(one["size_bytes"] for one in run[1:]):
                del run[0]
            if len(run) >= least:
                yield run


def _consecutive(files: Iterator[File]) -> Iterator[list[File]]:
    """Yield lists of files that have one file's size together."""
    run: list[File] = []
    for one in files:
        if run and sum(other["size_bytes"] for other in run) + one["size_bytes"] > FILE_SIZE:
            yield run
            run = []
        run.append(one)
    yield run
