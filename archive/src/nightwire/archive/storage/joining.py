"""Files of a table that become one: read and written in portions, and told to the table's log."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
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


def write_joined(files: Any, root: str, run: Sequence[File], shape: Shape) -> AddAction:
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
    parts, count = [f"{root}/{one['path']}" for one in run], 0
    with ExitStack() as unless_done:
        unless_done.callback(_remove, files, where)
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
        told = json.dumps(_statistics(run, count), default=_text)
        added = AddAction(name, files.size(where), _folder(run), _now(), data_change=True, stats=told)
        unless_done.pop_all()
    return added


def _remove(files: Any, where: str) -> None:
    with suppress(OSError):
        files.rm_file(where)


def _portions(files: Any, parts: Sequence[str], shape: Shape) -> Iterator[Any]:
    """Yield tables: all rows, sorted, or in their order a group at once."""
    if shape.sort_by:
        rows = dataset.dataset([*parts], shape.schema, "parquet", files)
        yield rows.to_table(use_threads=False).sort_by(shape.sort_by)
        return
    waiting = list[Any]()
    for group in _groups(files, parts):
        waiting.append(group.cast(shape.schema))  # delta-rs' DELETE writes string_view, binary_view
        if sum(map(len, waiting)) >= shape.group:
            yield pa.concat_tables(waiting)
            waiting.clear()
    if waiting:
        yield pa.concat_tables(waiting)


def _groups(files: Any, parts: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of files, each group by one read; a dataset would read ahead."""
    for part in parts:
        with ParquetFile(part, filesystem=files, pre_buffer=True) as opened:
            for at in range(opened.num_row_groups):
                yield opened.read_row_group(at, use_threads=False)


def _statistics(run: Sequence[File], count: int) -> dict[str, Any]:
    """Return what the log has of each file of a run as that of one with *count* rows.

    What one of them lacks is not told.
    """
    known = [one["num_records"] for one in run]
    if None not in known and count != sum(known):
        raise pa.ArrowInvalid(f"{count} rows were read of {sum(known)} in the log")
    return {
        "numRecords": count,
        "minValues": _together(run, "min", min),
        "maxValues": _together(run, "max", max),
        "nullCount": _together(run, "null_count", sum),
    }


def _together(run: Sequence[File], kind: str, way: Callable[[list[Any]], Any]) -> dict[str, Any]:
    parts = [one.get(kind) or {} for one in run]
    known = {name: [part.get(name) for part in parts] for name in parts[0]}
    return {name: way(values) for name, values in known.items() if None not in values}


def replace_by(table: DeltaTable, run: Sequence[File], joined: AddAction, attempts: int) -> None:
    """Commit *joined* as the replacement of a run.

    Rows count as changed: else delta-rs would commit it over another that has removed the same.

    Raises:
        CommitFailedError: Another process has removed one of them since *table* was looked at.
        DeltaError: The store does not answer.
    """
    folder = _folder(run)
    removed = [RemoveAction(one["path"], True, _now(), one["size_bytes"], folder) for one in run]
    table.create_write_transaction(
        [joined, *removed],
        "append",
        table.schema(),
        list(folder),
        commit_properties=CommitProperties(max_commit_retries=attempts),
    )


def _folder(run: Sequence[File]) -> dict[str, str | None]:
    values = run[0]["partition"].items()
    return {name: None if value is None else str(value) for name, value in values}


def _now() -> int:
    return time.time_ns() // 1_000_000


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value)
