"""One Delta table of the archive: its layout, reads, commits, compaction, and retention."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from nightwire.archive.storage.compaction import commit_replacement, write_compacted
from nightwire.archive.storage.compaction_plan import File, plan_runs
from nightwire.archive.storage.data_files import DataFiles, FileLayout
from nightwire.archive.storage.offset_commits import (
    ATTEMPTS,
    OffsetRanges,
    commit_properties,
    committed_offset,
)
from nightwire.archive.storage.packets import (
    PACKET_SCHEMA,
    Packet,
    by_folder,
    packet_tables,
    statistics,
)
from nightwire.archive.storage.store import ArchiveError, StorageError, Store
from nightwire.core.kafka import TopicPartition

log = logging.getLogger("nightwire.archive")


@dataclass(frozen=True)
class TableLayout:
    """The name of a table, and the layout of its files.

    Attributes:
        name: Its folder in the survey's.
        partition_by: Its partition columns; the first is a date, or a month, ``YYYY-MM``.
        sort_by: The column that sorts the rows of a file.
        file_order: The column that orders the files of a partition, as rows come.
        statistics: The columns whose minimum and maximum in each file are in the table's log.
        blob: A column of long values, without dictionary and statistics; empty for none.
    """

    name: str
    partition_by: Sequence[str]
    sort_by: str
    file_order: str
    statistics: Sequence[str]
    blob: str = ""


ALERTS = TableLayout(
    "alerts",
    ("night", "npix"),
    "_healpix_29",
    "timestamp",
    ("_healpix_29", "id", "object_id", "mjd_tai", "partition", "offset", "timestamp"),
)
PACKETS = TableLayout("packets", ("day", "partition"), "offset", "offset", ("offset", "timestamp"), "value")
INDEX = TableLayout("index", ("month", "kind"), "key", "timestamp", ("key", "_healpix_29", "timestamp"))

GROUP_ROWS = 8192
"""Rows of a row group, the least that is read."""
GROUP_BYTES = 512 << 10
"""Size of a row group of whole alerts. [byte]"""
FILES = WriterProperties(
    compression="ZSTD",
    max_row_group_size=GROUP_ROWS,
    default_column_properties=ColumnProperties(dictionary_enabled=False),
)
"""The settings of files of new rows: each partition's dictionaries would be in memory, 5 MB."""


class Table:
    """Reads and writes one table.

    Args:
        store: The archive's.
        survey: The survey's name.
        layout: That of the table.
    """

    def __init__(self, store: Store, survey: str, layout: TableLayout) -> None:
        self.layout, self._store = layout, store
        self.uri = f"{store.url}/{survey}/{layout.name}"
        self._delta: DeltaTable | None = None

    def refreshed(self) -> DeltaTable | None:
        """Return the table as it is now; None before its first commit.

        Raises:
            StorageError: The store does not answer.
        """
        with self._translated_errors("not opened"):
            try:
                if self._delta is None:
                    self._delta = DeltaTable(self.uri, storage_options=self._store.storage_options)
                else:
                    self._delta.update_incremental()
            except TableNotFoundError:
                return None
        return self._delta

    @contextmanager
    def _translated_errors(self, what: str, *passed: type[Exception]) -> Iterator[None]:
        """Turn the errors of Delta and Arrow within the block, but *passed*, into StorageError.

        They raise classes of their own, OSError, ValueError, RuntimeError, and plain Exception.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, (ArchiveError, *passed)):
                raise
            raise StorageError(f"{self.uri}: {what}: {error}") from error

    def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset of *partition* to archive; None where it was never archived.

        Raises:
            StorageError: The store does not answer, or the table is gone; the next call reopens it.
        """
        self.refreshed()
        try:
            return self.known_position(partition)
        except StorageError:
            self._delta = None
            raise

    def known_position(self, partition: TopicPartition) -> int | None:
        """Return that offset as of the last refresh."""
        with self._translated_errors("its position is not known"):
            return None if self._delta is None else committed_offset(self._delta, partition)

    def read_range(
        self, number: int, begin: int, end: int, batch_rows: int, columns: Sequence[str] | None = None
    ) -> Iterator[Any]:
        """Yield the rows of a range of offsets of a Kafka partition, in order, in tables.

        Args:
            number: The partition's.
            begin: The first offset.
            end: The offset after the last one.
            batch_rows: Most rows of a table; in memory are these, and the offsets of all.
            columns: Those that are read; None for all.

        Raises:
            StorageError: The store does not answer.
        """
        if (found := self.refreshed()) is None:
            return
        with self._translated_errors("not read"):
            dataset = found.to_pyarrow_dataset()
            rows = dataset.to_table(["offset"], filter=_range_filter(number, begin, end - 1))
        offsets = rows.column("offset").combine_chunks().sort()
        for first in range(0, len(offsets), batch_rows):
            some = offsets[first : first + batch_rows]
            wanted = _range_filter(number, some[0].as_py(), some[-1].as_py())
            with self._translated_errors("not read"):
                rows = dataset.to_table(columns and [*columns], filter=wanted).sort_by("offset")
            yield rows

    def count(self, number: int, begin: int, end: int) -> int:
        """Return the number of rows of a range of offsets of a Kafka partition.

        Raises:
            StorageError: The store does not answer.
        """
        if (found := self.refreshed()) is None:
            return 0
        with self._translated_errors("not read"):
            return int(found.to_pyarrow_dataset().count_rows(filter=_range_filter(number, begin, end - 1)))

    @property
    def schema(self) -> Any:
        """The Arrow schema as of the last refresh; empty before the first commit."""
        return pa.schema([]) if self._delta is None else pa.schema(self._delta.schema().to_arrow())

    def append(self, rows: Any, ranges: OffsetRanges) -> None:
        """Add *rows* and the new position of each partition in one commit.

        Args:
            rows: An Arrow table; new columns widen the table.
            ranges: Each partition's position as the caller found it, and the one after *rows*.

        Raises:
            FencedError: A position has changed: another process was here.
            StorageError: There is no room, or the store refuses; nothing was committed.
        """
        rows = rows.sort_by(self.layout.sort_by)

        def commit(found: DeltaTable) -> None:
            write_deltalake(
                found,
                rows,
                mode="append",
                schema_mode="merge",
                writer_properties=FILES,
                commit_properties=commit_properties(self.uri, found, ranges),
            )

        self._commit(commit, rows.schema)

    def append_packets(self, packets: Sequence[Packet], ranges: OffsetRanges) -> None:
        """Add *packets*, as `append` does, with a row group of them in memory.

        delta-rs would have them all there, five times.
        """
        size = sum(len(one.value or b"") for one in packets)
        layout = self._file_layout(PACKET_SCHEMA, size // max(1, len(packets)))
        with self._translated_errors("nothing was written"), self._data_files() as files:
            added = [
                files.write(
                    *where,
                    packet_tables(some, layout.schema, layout.group_rows),
                    layout,
                    partial(statistics, some),
                )
                for where, some in by_folder(packets)
            ]

        def commit(found: DeltaTable) -> None:
            properties = commit_properties(self.uri, found, ranges)
            found.create_write_transaction(
                [*added], "append", found.schema(), [*self.layout.partition_by], commit_properties=properties
            )

        self._commit(commit, PACKET_SCHEMA)

    def _commit(self, commit: Callable[[DeltaTable], None], schema: Any) -> None:
        """Call *commit* with the table, created if need be, again after others' commits.

        Raises:
            FencedError: A position has changed.
            StorageError: There is no room, or the store refuses; nothing was committed.
        """
        for _ in range(ATTEMPTS):
            try:
                with self._translated_errors("nothing was written", CommitFailedError):
                    commit(self._delta or self._create(schema))
                self.refreshed()
            except CommitFailedError:
                self.refreshed()
            except StorageError:
                self._delta = None
                self.refreshed()
                raise
            else:
                return
        raise StorageError(f"{self.uri}: others were before in each of {ATTEMPTS} attempts")

    def _create(self, schema: Any) -> DeltaTable:
        """Create the table unless another process has, and return it."""
        DeltaTable.create(
            self.uri,
            schema,
            mode="ignore",
            partition_by=list(self.layout.partition_by),
            configuration={"delta.dataSkippingStatsColumns": ",".join(self.layout.statistics)},
            storage_options=self._store.storage_options,
        )
        self._delta = DeltaTable(self.uri, storage_options=self._store.storage_options)
        return self._delta

    def _data_files(self) -> DataFiles:
        return DataFiles(self._store, self.uri.removeprefix("s3://"))

    def _file_layout(self, schema: Any, mean: int) -> FileLayout:
        """Return the layout of a file of rows of *mean* bytes; partition columns are not in it."""
        columns = [field for field in schema if field.name not in self.layout.partition_by]
        group_rows = min(GROUP_ROWS, max(1, GROUP_BYTES // max(1, mean))) if self.layout.blob else GROUP_ROWS
        return FileLayout(pa.schema(columns), group_rows, self.layout.blob)

    def compact(self, min_files: int = 2) -> int:
        """Replace runs of small files, at least so many, by one each; return by how many.

        A run that another process has removed a file of meanwhile is left.  (delta-rs' own OPTIMIZE
        commits over that, and all rows are there twice; its overwrite with a predicate has all rows
        in memory, several times.)

        Raises:
            StorageError: There is no room, or the store does not answer.
        """
        if (found := self.refreshed()) is None:
            return 0
        before, version = len(found.file_uris()), found.version()
        files = pa.table(found.get_add_actions())
        paths = {*files["path"].to_pylist()}
        for run in plan_runs(files, self.layout.partition_by, self.layout.file_order, min_files):
            if found.version() != version:  # what others did before is no conflict to a commit
                paths, version = {*pa.table(found.get_add_actions())["path"].to_pylist()}, found.version()
            if not {one["path"] for one in run} <= paths:
                continue
            try:
                with self._translated_errors("not joined", CommitFailedError):
                    self._compact(found, run)
                version += 1
            except CommitFailedError as error:
                log.info("%s: not joined, others wrote there: %s", self.uri, error)
            self.refreshed()
        return before - len(found.file_uris())

    def _compact(self, found: DeltaTable, run: Sequence[File]) -> None:
        if features := found.protocol().reader_features:  # as of rows that are deleted within a file
            raise StorageError(f"{self.uri}: not joined: others have switched on {', '.join(features)}")
        size, rows = (sum(one[name] or 0 for one in run) for name in ("size_bytes", "num_records"))
        # whole alerts come in order; to sort them would take them all into memory
        sort_by = "" if self.layout.blob else self.layout.sort_by
        layout = self._file_layout(self.schema, size // max(1, rows))
        with self._data_files() as files:
            added = write_compacted(files, run, layout, sort_by)
        commit_replacement(found, run, added, ATTEMPTS)

    def expire(self, before: str, vacuum_after: timedelta) -> None:
        """Delete rows whose date, or month, is before a day, and vacuum files that were replaced.

        Args:
            before: ``YYYY-MM-DD``; empty: no rows are deleted.
            vacuum_after: The time for which replaced files stay.

        Raises:
            StorageError: The store does not answer, or another process was before.
        """
        date, hours = self.layout.partition_by[0], int(vacuum_after.total_seconds() // 3600)
        if (found := self.refreshed()) is not None:
            with self._translated_errors("nothing was deleted"):
                if before:
                    found.delete(f"{date} < '{before[:7] if date == 'month' else before}'")
                found.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)


def _range_filter(number: int, first: int, last: int) -> Any:
    offset = pc.field("offset")
    return (pc.field("partition") == number) & (offset >= first) & (offset <= last)
