"""Files of a table that become one: read and written in portions, and told to the table's log."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from posixpath import dirname
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction
from pyarrow import dataset
from pyarrow.parquet import ParquetFile, ParquetWriter

from nightwire.archive.storage.file_runs import File


@dataclass(frozen=True)
class Shape:
    """How a file is written.

    Attributes:
        schema: Its columns.
        sort_by: A column; empty: rows stay in their order, and few are in memory at once.
        group: Rows of a group, at least.
        blob: A column without dictionary and statistics; empty for none.
    """

    schema: Any
    sort_by: str
    group: int
    blob: str


def write_joined(files: Any, root: str, run: Sequence[File], shape: Shape) -> File:
    """Write the rows of a run into one file, and return what the table's log is to have of it.

    Args:
        files: The file system of the table.
        root: The table's folder there.
        run: Files of one folder, in the order of their rows.
        shape: How it is written.

    Raises:
        OSError: There is no room, or the store does not answer.
        ArrowException: A file is damaged, or has other rows than the log says.
    """
    name = f"{dirname(run[0]['path'])}/part-{uuid4()}.zstd.parquet"
    where, plain = f"{root}/{name}", [one for one in shape.schema.names if one != shape.blob]
    parts = [f"{root}/{one['path']}" for one in run]
    count = 0
    try:
        with ParquetWriter(
            where,
            shape.schema,
            filesystem=files,
            compression="zstd",
            use_dictionary=plain,
            write_statistics=plain,
        ) as writer:
            for portion in _portions(files, parts, shape):
                writer.write_table(portion, row_group_size=2 * shape.group)
                count += len(portion)
        return _merged(run, count) | {"path": name, "size_bytes": files.size(where)}
    except BaseException:
        with suppress(OSError):
            files.rm_file(where)
        raise


def _portions(files: Any, parts: Sequence[str], shape: Shape) -> Iterator[Any]:
    """Yield tables: all rows, sorted, or in their order a group at once."""
    if shape.sort_by:
        rows = dataset.dataset([*parts], shape.schema, "parquet", files)
        yield rows.to_table(use_threads=False).sort_by(shape.sort_by)
        return
    waiting = list[Any]()
    for batch in _groups(files, parts):
        waiting.append(batch)
        if sum(map(len, waiting)) >= shape.group:
            yield pa.Table.from_batches(waiting).cast(shape.schema)
            waiting.clear()
    if waiting:
        yield pa.Table.from_batches(waiting).cast(shape.schema)


def _groups(files: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of files, each group by one read; a dataset would read ahead."""
    for part in parts:
        with ParquetFile(part, filesystem=files, pre_buffer=True) as opened:
            for at in range(opened.num_row_groups):
                yield from opened.read_row_group(at, use_threads=False).to_batches()


def _merged(run: Sequence[File], count: int) -> dict[str, Any]:
    """Return what the log has of each file of a run as that of one with *count* rows.

    What one of them lacks is not told.
    """
    ways: Mapping[str, Callable[[list[Any]], Any]] = {
        "min.": min,
        "max.": max,
        "null_count.": sum,
        "num_records": sum,
    }
    known = {name: [one[name] for one in run] for name in run[0]}
    merged = {
        name: way(values)
        for name, values in known.items()
        for begin, way in ways.items()
        if name.startswith(begin) and None not in values
    }
    if count != merged.setdefault("num_records", count):
        raise pa.ArrowInvalid(f"{count} rows were read of {merged['num_records']} in the log")
    return {name: one for name, one in run[0].items() if name.startswith("partition.")} | merged


def commit_joined(table: DeltaTable, run: Sequence[File], joined: File, attempts: int) -> None:
    """Put *joined* in the place of a run.

    Rows count as changed: else delta-rs would commit it over another that has removed the same.

    Raises:
        CommitFailedError: Another process has removed one of them since *table* was looked at.
        DeltaError: The store does not answer.
    """
    now = time.time_ns() // 1_000_000
    told = {
        "numRecords": joined["num_records"],
        "minValues": _within(joined, "min."),
        "maxValues": _within(joined, "max."),
        "nullCount": _within(joined, "null_count."),
    }
    values = _within(joined, "partition.").items()
    folder = {name: None if value is None else str(value) for name, value in values}
    added = AddAction(
        joined["path"], joined["size_bytes"], folder, now, True, json.dumps(told, default=_told)
    )
    removed = [RemoveAction(one["path"], True, now, one["size_bytes"], folder) for one in run]
    table.create_write_transaction(
        [added, *removed],
        "append",
        table.schema(),
        list(folder),
        commit_properties=CommitProperties(max_commit_retries=attempts),
    )


def _within(file: File, begin: str) -> dict[str, Any]:
    return {name.removeprefix(begin): value for name, value in file.items() if name.startswith(begin)}


def _told(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value)
