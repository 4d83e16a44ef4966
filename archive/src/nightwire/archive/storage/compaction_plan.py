"""The choice of files to compact: runs of small ones that follow each other.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

FILE_SIZE = 512 << 20
"""Most that the files of one run have together. [byte]"""

File = Mapping[str, Any]
"""A file's entry in the log: ``size_bytes``; by column ``partition``, ``min``, ``max``."""


def plan_runs(files: Any, partitions: Sequence[str], file_order: str, min_files: int) -> Iterator[list[File]]:
    """Yield the runs of files to compact, each within one partition of the table.

    A file that is longer than all that follow it stays as it is, so that no row is rewritten more
    often than its file doubles.

    Args:
        files: The log's entries of all files, an Arrow table.
        partitions: The table's partition columns.
        file_order: The column by whose minimum files are ordered.
        min_files: Least length of a run.
    """

    def partition(one: File) -> list[str]:
        return [str(one["partition"][name]) for name in partitions]

    def order(one: File) -> tuple[Any, ...]:
        begin = (one.get("min") or {}).get(file_order)
        return partition(one), begin is None, begin

    for _, some in groupby(sorted(files.to_pylist(), key=order), key=partition):
        for run in _consecutive(some):
            while run and run[0]["size_bytes"] > sum(one["size_bytes"] for one in run[1:]):
                del run[0]
            if len(run) >= min_files:
                yield run


def _consecutive(files: Iterator[File]) -> Iterator[list[File]]:
    """Yield lists of files that have at most `FILE_SIZE` together."""
    run: list[File] = []
    for one in files:
        if run and sum(other["size_bytes"] for other in run) + one["size_bytes"] > FILE_SIZE:
            yield run
            run = []
        run.append(one)
    yield run
