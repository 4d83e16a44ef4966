"""New Parquet files of a table, written a row group at a time, and their entries for its log."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from deltalake.transaction import AddAction
from pyarrow.parquet import ParquetWriter

from nightwire.archive.storage.store import Store


@dataclass(frozen=True)
class FileLayout:
    """The layout of a Parquet file.

    Attributes:
        schema: Its columns.
        group_rows: Least rows of a row group; most are twice as many.
        blob: A column without dictionary and statistics; empty for none.
    """

    schema: Any
    group_rows: int
    blob: str


class DataFiles:
    """Writes files of a table; if the block fails they are removed again.

    Args:
        store: The archive's.
        root: The table's folder in its file system.
    """

    def __init__(self, store: Store, root: str) -> None:
        self.filesystem, self.root = store.filesystem, root
        self._is_remote, self._removals = store.is_remote, ExitStack()

    def __enter__(self) -> "DataFiles":
        return self

    def __exit__(self, failure: type[BaseException] | None, *_error: object) -> None:
        if failure is not None:
            self._removals.close()

    def write(
        self,
        partition: Mapping[str, str | None],
        folder: str,
        tables: Iterable[Any],
        layout: FileLayout,
        statistics: Callable[[int], dict[str, Any]],
    ) -> AddAction:
        """Write a file, and return its entry for the table's log.

        Args:
            partition: The values of the partition columns.
            folder: That of the partition, below the table's.
            tables: The rows, Arrow tables.
            layout: That of the file.
            statistics: Returns Delta's statistics of so many rows.

        Raises:
            OSError: There is no room, or the store does not answer.
            ArrowException: The rows cannot be read, or do not fit.
        """
        name = f"{folder}/part-{uuid4()}.zstd.parquet"
        path, plain = f"{self.root}/{name}", [one for one in layout.schema.names if one != layout.blob]
        self._removals.callback(self._remove, path)
        if not self._is_remote:  # a bucket has no folders
            self.filesystem.makedirs(f"{self.root}/{folder}", exist_ok=True)
        count = 0
        with ParquetWriter(
            path,
            layout.schema,
            filesystem=self.filesystem,
            compression="zstd",
            use_dictionary=plain,
            write_statistics=plain,
        ) as writer:
            for rows in tables:
                writer.write_table(rows, row_group_size=2 * layout.group_rows)
                count += len(rows)
        told = json.dumps(statistics(count), default=_text)
        return AddAction(name, self.filesystem.size(path), {**partition}, now(), data_change=True, stats=told)

    def _remove(self, path: str) -> None:
        with suppress(OSError):
            self.filesystem.rm_file(path)


def now() -> int:
    """Return the time. [ms since 1970]"""
    return time.time_ns() // 1_000_000


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value)
