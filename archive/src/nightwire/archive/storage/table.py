"""One Delta table of the archive: rows are added in one commit with the offsets that they end at.

The commit holds an application transaction a partition (``alerts.lsst/0``: the next offset), so
that rows and position cannot disagree, wherever a process is killed; and a second writer of the
same partition is refused by the table itself.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from nightwire.archive.storage.file_runs import File, runs
from nightwire.archive.storage.joining import Shape, replace_by, write_joined
from nightwire.archive.storage.store import ArchiveError, StorageError, Store
from nightwire.core.kafka import TopicPartition

log = logging.getLogger("nightwire.archive")

ATTEMPTS = 20
"""How often a commit is tried that others were before."""


class FencedError(ArchiveError):
    """Another process has archived the same partition: this one's offsets are old."""


Span = tuple[int | None, int]
"""A partition's position before rows are added, None for never, and after."""


@dataclass(frozen=True)
class Kind:
    """What a table is for.

    Attributes:
        name: Its folder in the survey's.
        partition_by: Columns that are folders; the first is a date, or a month, ``YYYY-MM``.
        sort_by: The column by which the rows of a file are sorted.
        follows: The column by which files follow each other, as rows come.
        statistics: Columns of which the table's log has the least and the greatest of each file.
        blob: A column of long values, which no dictionary helps; empty for none.
    """

    name: str
    partition_by: Sequence[str]
    sort_by: str
    follows: str
    statistics: Sequence[str]
    blob: str = ""


ALERTS = Kind(
    "alerts",
    ("night", "npix"),
    "_healpix_29",
    "timestamp",
    ("_healpix_29", "id", "object_id", "mjd_tai", "partition", "offset", "timestamp"),
)
PACKETS = Kind("packets", ("day", "partition"), "offset", "offset", ("offset", "timestamp"), "value")
INDEX = Kind("index", ("month", "kind"), "key", "timestamp", ("key", "_healpix_29", "timestamp"))

ROWS = 8192
"""Rows in a group of columns: what is read at least."""
GROUP_BYTES = 512 << 10
"""Size of a group of whole alerts: what is read at least. [byte]"""


class Table:
    """Reads and writes one table.

    Args:
        store: The archive's.
        survey: Whose.
        kind: What it is for.
    """

    def __init__(self, store: Store, survey: str, kind: Kind) -> None:
        self.kind, self._store = kind, store
        self.uri = f"{store.url}/{survey}/{kind.name}"
        self._delta: DeltaTable | None = None

    def refreshed(self) -> DeltaTable | None:
        """Return the table as it is now; None before its first commit.

        Raises:
            StorageError: The store does not answer.
        """
        with self._named("not opened"):
            try:
                if self._delta is None:
                    self._delta = DeltaTable(self.uri, storage_options=self._store.storage_options)
                else:
                    self._delta.update_incremental()
            except TableNotFoundError:
                return None
        return self._delta

    @contextmanager
    def _named(self, what: str, *passed: type[Exception]) -> Iterator[None]:
        """Let what Delta and Arrow raise within the block, but *passed*, be a StorageError.

        They raise errors of their own, OSError, ValueError, RuntimeError, and plain Exception.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, (ArchiveError, *passed)):
                raise
            raise StorageError(f"{self.uri}: {what}: {error}") from error

    def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset of *partition* that the table has not; None for all.

        Raises:
            StorageError: The store does not answer, or the table is gone: it is opened anew next.
        """
        self.refreshed()
        try:
            return self.known_position(partition)
        except StorageError:
            self._delta = None
            raise

    def known_position(self, partition: TopicPartition) -> int | None:
        """Return that offset as it was when the table was looked at last."""
        with self._named("its position is not known"):
            return None if self._delta is None else self._delta.transaction_version(application(partition))

    def between(
        self, number: int, begin: int, end: int, most: int, columns: Sequence[str] | None = None
    ) -> Iterator[Any]:
        """Yield the rows of a range of offsets of a partition, in order, *most* of them at once.

        Args:
            number: Of the partition.
            begin: The first offset.
            end: The offset after the last one.
            most: Rows of a portion: so many are in memory, and the offsets of all.
            columns: Those that are read; None for all.

        Raises:
            StorageError: The store does not answer.
        """
        if (found := self.refreshed()) is None:
            return
        with self._named("not read"):
            dataset = found.to_pyarrow_dataset()
            rows = dataset.to_table(["offset"], filter=_within(number, begin, end - 1))
        offsets = rows.column("offset").combine_chunks().sort()
        for first in range(0, len(offsets), most):
            some = offsets[first : first + most]
            wanted = _within(number, some[0].as_py(), some[-1].as_py())
            with self._named("not read"):
                rows = dataset.to_table(columns and [*columns], filter=wanted).sort_by("offset")
            yield rows

    def count(self, number: int, begin: int, end: int) -> int:
        """Return how many rows there are of a range of offsets of a partition.

        Raises:
            StorageError: The store does not answer.
        """
        if (found := self.refreshed()) is None:
            return 0
        with self._named("not read"):
            return int(found.to_pyarrow_dataset().count_rows(filter=_within(number, begin, end - 1)))

    @property
    def schema(self) -> Any:
        """The columns of the table when it was looked at last; none before its first commit."""
        return pa.schema([]) if self._delta is None else pa.schema(self._delta.schema().to_arrow())

    def append(self, rows: Any, spans: Mapping[TopicPartition, Span]) -> None:
        """Add *rows*, and note in the same commit how far each partition is archived.

        Args:
            rows: An Arrow table; columns that the table has not widen it.
            spans: For each partition the position that the caller found, and the one after *rows*.

        Raises:
            FencedError: A position is not what the caller found: another process was here.
            StorageError: There is no room, or the store refuses; nothing was committed.
        """
        rows = rows.sort_by(self.kind.sort_by)
        for _ in range(ATTEMPTS):
            try:
                with self._named("nothing was written", CommitFailedError):
                    found = self._delta or self._created(rows.schema)
                    self._check(spans)
                    self._write(found, rows, spans)
            except CommitFailedError:
                self.refreshed()
            except StorageError:
                self._delta = None
                self.refreshed()
                raise
            else:
                return
        raise StorageError(f"{self.uri}: others were before in each of {ATTEMPTS} attempts")

    def _check(self, spans: Mapping[TopicPartition, Span]) -> None:
        for one, (found, _) in spans.items():
            now = self.known_position(one)
            if now != found:
                raise FencedError(
                    f"{self.uri}: {application(one)} is at {now}, not at {found}: another process archives it"
                )

    def _created(self, schema: Any) -> DeltaTable:
        """Make the table unless another process has: rows are added to what is known alone."""
        DeltaTable.create(
            self.uri,
            schema,
            mode="ignore",
            partition_by=list(self.kind.partition_by),
            configuration={"delta.dataSkippingStatsColumns": ",".join(self.kind.statistics)},
            storage_options=self._store.storage_options,
        )
        self._delta = DeltaTable(self.uri, storage_options=self._store.storage_options)
        return self._delta

    def _write(self, found: DeltaTable, rows: Any, spans: Mapping[TopicPartition, Span]) -> None:
        done = [Transaction(application(one), end) for one, (_, end) in spans.items()]
        write_deltalake(
            found,
            rows,
            mode="append",
            schema_mode="merge",
            writer_properties=self._grouped(rows.nbytes // max(1, len(rows))),
            commit_properties=CommitProperties(app_transactions=done, max_commit_retries=ATTEMPTS),
        )
        self.refreshed()

    def _grouped(self, mean: int) -> WriterProperties:
        """Return how files are written whose rows have *mean* bytes."""
        columns = None
        if self.kind.blob:
            # else the footer, which readers keep in memory, has two whole alerts of each group
            columns = {self.kind.blob: ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")}
        return WriterProperties(
            compression="ZSTD", max_row_group_size=self._group(mean), column_properties=columns
        )

    def _group(self, mean: int) -> int:
        """Return how many rows of *mean* bytes are a group."""
        return min(ROWS, max(1, GROUP_BYTES // max(1, mean))) if self.kind.blob else ROWS

    def compact(self, least: int = 2) -> int:
        """Join small files, at least so many; return how many became fewer.

        One file replaces others: where another process has removed one of them meanwhile,
        nothing is done.  (delta-rs' own OPTIMIZE commits over another's, and all rows are there
        twice; its overwrite with a predicate has all of it in memory, several times.)

        Raises:
            StorageError: There is no room, or the store does not answer.
        """
        if (found := self.refreshed()) is None:
            return 0
        before = len(found.file_uris())
        for run in runs(pa.table(found.get_add_actions()), self.kind.partition_by, self.kind.follows, least):
            there = pa.table(found.get_add_actions())["path"].to_pylist()
            if not {one["path"] for one in run} <= {*there}:
                continue  # what went before the commit's version is no conflict to it
            try:
                with self._named("not joined", CommitFailedError):
                    self._join(found, run)
            except CommitFailedError as error:
                log.info("%s: not joined, others wrote there: %s", self.uri, error)
            self.refreshed()
        return before - len(found.file_uris())

    def _join(self, found: DeltaTable, run: Sequence[File]) -> None:
        if features := found.protocol().reader_features:  # as of rows that are deleted within a file
            raise StorageError(f"{self.uri}: not joined: others have switched on {', '.join(features)}")
        size, rows = (sum(one[name] or 0 for one in run) for name in ("size_bytes", "num_records"))
        group = self._group(size // max(1, rows))
        columns = [field for field in self.schema if field.name not in self.kind.partition_by]
        # whole alerts come in order; to sort them would take them all into memory
        sort_by = "" if self.kind.blob else self.kind.sort_by
        shape = Shape(pa.schema(columns), sort_by, group, self.kind.blob)
        joined = write_joined(self._store.filesystem, self.uri.removeprefix("s3://"), run, shape)
        replace_by(found, run, joined, ATTEMPTS)

    def forget(self, before: str, spared: timedelta) -> None:
        """Let rows go whose date, or month, is before a day, and files that no version needs.

        Args:
            before: ``YYYY-MM-DD``; empty for no day.
            spared: Files that were replaced stay for so long.

        Raises:
            StorageError: The store does not answer, or another process was before.
        """
        folder, hours = self.kind.partition_by[0], int(spared.total_seconds() // 3600)
        if (found := self.refreshed()) is not None:
            with self._named("nothing was deleted"):
                if before:
                    found.delete(f"{folder} < '{before[:7] if folder == 'month' else before}'")
                found.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)


def application(partition: TopicPartition) -> str:
    """Return the name under which a table keeps the position of *partition*."""
    topic, number = partition
    return f"{topic}/{number}"


def _within(number: int, first: int, last: int) -> Any:
    offset = pc.field("offset")
    return (pc.field("partition") == number) & (offset >= first) & (offset <= last)
