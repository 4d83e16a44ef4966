"""The compaction of a run of files into one file, and its Delta commit."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from posixpath import dirname
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import dataset
from pyarrow.parquet import ParquetFile

from nightwire.archive.storage.compaction_plan import File
from nightwire.archive.storage.data_files import DataFiles, FileLayout, now


def write_compacted(files: DataFiles, run: Sequence[File], layout: FileLayout, sort_by: str) -> AddAction:
    """Write the rows of a run into one file, and return its entry for the table's log.

    Args:
        files: Writes it, to the table.
        run: Files of one partition of the table, in the order of their rows.
        layout: That of the file.
        sort_by: The column that sorts its rows; empty: their order is kept, and few are in memory.

    Raises:
        OSError: There is no room, or the store does not answer.
        ArrowException: A file is damaged, or has other rows than the log says.
    """
    rows = _read(files.filesystem, [f"{files.root}/{one['path']}" for one in run], layout, sort_by)
    return files.write(_partition(run), dirname(run[0]["path"]), rows, layout, partial(_statistics, run))


def _read(filesystem: Any, paths: Sequence[str], layout: FileLayout, sort_by: str) -> Iterator[Any]:
    """Yield tables: all rows, sorted, or those of a few row groups in their order."""
    if sort_by:
        rows = dataset.dataset([*paths], layout.schema, "parquet", filesystem)
        yield rows.to_table(use_threads=False).sort_by(sort_by)
        return
    waiting = list[Any]()
    for group in _row_groups(filesystem, paths):
        waiting.append(group.cast(layout.schema))  # delta-rs' DELETE writes string_view, binary_view
        if sum(map(len, waiting)) >= layout.group_rows:
            yield pa.concat_tables(waiting)
            waiting.clear()
    if waiting:
        yield pa.concat_tables(waiting)


def _row_groups(filesystem: Any, paths: Sequence[str]) -> Iterator[Any]:
    """Yield the row groups of files, each by one read; a dataset would read ahead."""
    for path in paths:
        with ParquetFile(path, filesystem=filesystem, pre_buffer=True) as opened:
            for number in range(opened.num_row_groups):
                yield opened.read_row_group(number, use_threads=False)


def _statistics(run: Sequence[File], count: int) -> dict[str, Any]:
    """Return Delta's statistics of a file of *count* rows that holds a run's.

    A column that one of them has no statistics of has none.
    """
    known = [one["num_records"] for one in run]
    if None not in known and count != sum(known):
        raise pa.ArrowInvalid(f"{count} rows were read of {sum(known)} in the log")
    return {
        "numRecords": count,
        "minValues": _combined(run, "min", min),
        "maxValues": _combined(run, "max", max),
        "nullCount": _combined(run, "null_count", sum),
    }


def _combined(run: Sequence[File], name: str, combine: Callable[[list[Any]], Any]) -> dict[str, Any]:
    parts = [one.get(name) or {} for one in run]
    known = {column: [part.get(column) for part in parts] for column in parts[0]}
    return {column: combine(values) for column, values in known.items() if None not in values}


def commit_replacement(table: DeltaTable, run: Sequence[File], added: AddAction, attempts: int) -> None:
    """Commit a file as the replacement of a run.

    Rows count as changed: else delta-rs would commit over another's removal of the same files.

    Raises:
        CommitFailedError: Another process has removed a file of the run since *table* was read.
        DeltaError: The store does not answer.
    """
    partition = _partition(run)
    removed = [RemoveAction(one["path"], True, now(), one["size_bytes"], partition) for one in run]
    table.create_write_transaction(
        [added, *removed],
        "append",
        table.schema(),
        list(partition),
        commit_properties=CommitProperties(max_commit_retries=attempts),
    )


def _partition(run: Sequence[File]) -> dict[str, str | None]:
    values = run[0]["partition"].items()
    return {name: None if value is None else str(value) for name, value in values}
