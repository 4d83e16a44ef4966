"""Reads of one survey's tables: by id, object, position on the sky, and offset."""

import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nightwire.archive.asking.cone import MOST_RANGES, Cone, joined
from nightwire.archive.asking.engine import Engine, source
from nightwire.archive.asking.file_list import FileList
from nightwire.archive.asking.sorted_files import SortedFiles
from nightwire.archive.storage import (
    ALERTS,
    INDEX,
    MAX_TIMESTAMP,
    PACKETS,
    RECORD_SCHEMA,
    ArchiveError,
    StorageError,
    Store,
    Table,
    WholeRecord,
    records_in,
)
from nightwire.archive.writing import COMMON_COLUMNS
from nightwire.schemas.topics import alerts as topic_of

IN_TIME = [("mjd_tai", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
"""The order of answers."""
FAR = pa.scalar(datetime.max.replace(tzinfo=UTC), pa.timestamp("us", tz="UTC"))
"""After all times."""
PORTION = 16
"""Whole records that are read at once: of the largest, 5 MB."""
MANY = 1000
"""Pixels that are looked for one by one."""
FRESH = 1.0
"""For so long it is believed that a table is as it was. [s]"""
KEPT = 64
"""Groups of the index that are kept, of each survey: alerts of a visit have ids near each other.
Some 22 MB for stamps, 100 MB where all columns are asked for."""
KEPT_WHOLE = 32
"""Groups of whole alerts that are kept, of each survey, some 16 MB: of an alert three stamps are
asked for, and its neighbours are of the same visit."""
ALERT_FOLDERS = "'night': DATE, 'npix': BIGINT"
PACKET_FOLDERS = "'day': DATE, 'partition': INTEGER"
"""Columns that are folders of tables, and their types in SQL."""


class SurveyTables:
    """Asks one survey's tables.

    Args:
        store: The archive's.
        survey: Its name.
        engine: Answers SQL.
    """

    def __init__(self, store: Store, survey: str, engine: Engine) -> None:
        self.survey, self.topic, self._engine = survey, topic_of(survey), engine
        self.alerts, self.index, self.packets = (
            FileList(Table(store, survey, layout)) for layout in (ALERTS, INDEX, PACKETS)
        )
        self._files, self._index_files = SortedFiles(store, KEPT_WHOLE), SortedFiles(store, KEPT)
        self._lock, self._looked = threading.Lock(), float("-inf")

    def refresh(self, *, at_once: bool = False) -> None:
        """Look for what was archived since, unless that was done a moment ago.

        Args:
            at_once: Even then.

        Raises:
            StorageError: The store does not answer.
        """
        with self._lock:
            if (now := time.monotonic()) - self._looked >= FRESH or at_once:
                self._refresh()
                self._looked = now

    def _refresh(self) -> None:
        # what the index has is in the others by then, but for rows that are being written
        changed = [one.refresh() for one in (self.index, self.packets, self.alerts)]
        for view, files, folders in (
            (self.survey, self.alerts, ALERT_FOLDERS),
            (f"{self.survey}_packets", self.packets, PACKET_FOLDERS),
        ):
            if any(changed) and (found := files.all()):
                try:
                    self._engine.define(view, source(found, folders))
                except StorageError:
                    files.version = -1  # defined by the next look
                    raise

    def by_key(self, kind: str, key: str, columns: Sequence[str]) -> Any:
        """Return the alerts whose id, or object, *key* is; in the order of their time.

        Args:
            kind: ``id`` or ``object``.
            key: As text.
            columns: What is wanted; ``*`` is all.
        """
        files = self.index.within("key", key, key, kind=[kind])
        names = dict.fromkeys([*columns, *(name for name, _ in IN_TIME)])
        found = self._indexed(
            files, "key", [(key, key)], [*names] if {*names} <= {*COMMON_COLUMNS} else COMMON_COLUMNS
        )
        return self._chosen(found.sort_by(IN_TIME) if len(found) > 1 else found, columns)

    def cone(self, cone: Cone, columns: Sequence[str], most: int | None = None) -> Any:
        """Return the alerts within a cone, the nearest first, with their ``distance``. [deg]

        Args:
            cone: Where.
            columns: What is wanted; ``*`` is all.
            most: Most alerts that are looked at; None for any.

        Raises:
            QuestionError: There may be more.
        """
        ranges = cone.ranges
        files = self.index.within("_healpix_29", ranges[0][0], ranges[-1][1], kind=["place"])
        found = self._indexed(files, "_healpix_29", ranges, most=most)
        found = found.append_column("distance", cone.distances(found.column("ra"), found.column("dec")))
        near = found.filter(pc.less_equal(found.column("distance"), cone.radius))
        return self._chosen(near.sort_by([("distance", "ascending"), *IN_TIME]), [*columns, "distance"])

    def _indexed(
        self,
        files: Sequence[str],
        column: str,
        ranges: Sequence[tuple[Any, Any]],
        names: Sequence[str] = COMMON_COLUMNS,
        most: int | None = None,
    ) -> Any:
        """Return what the index has of the alerts whose *column* lies in one of *ranges*."""
        found = self._index_files.rows(files, column, ranges, names, most)
        if found is not None:
            return found
        if not (there := self.index.all()[:1]):
            raise ArchiveError(f"no alerts of {self.survey} are archived yet")
        return self._index_files.rows(there, "key", [("", chr(0x10FFFF))], COMMON_COLUMNS).slice(0, 0)

    def _chosen(self, found: Any, columns: Sequence[str]) -> Any:
        """Return *columns* of the alerts that the index *found*; others lie in the wide table.

        Of these an alert is left out that the wide table has not: not yet, or no longer.
        """
        if set(columns) <= set(found.schema.names):
            return found.select(list(columns))
        folders = {name: pc.unique(found.column(name)).to_pylist() for name in ("night", "npix")}
        pixels = pc.unique(found.column("_healpix_29")).to_pylist()
        files = self.alerts.within("_healpix_29", min(pixels, default=0), max(pixels, default=0), **folders)
        ours = {"distance"} & {*found.schema.names}
        names = ", ".join(quoted(one) for one in columns if one not in ours)
        there = _at(sorted(pixels) or [-2])
        rows = self._engine.rows(
            f'SELECT partition AS "#p", "offset" AS "#o", {names} '  # noqa: S608 (names, quoted)
            f"FROM {source(files or self.alerts.all()[:1], ALERT_FOLDERS)} WHERE {there}"
        )
        known = {one: n for n, one in enumerate(_positions(rows, "#p", "#o"))}
        at = pa.array([known.get(one) for one in _positions(found)], pa.int64())
        taken = rows.take(at.drop_null()).drop_columns(["#p", "#o"])
        if not ours & {*columns}:
            return taken
        return taken.append_column("distance", found.column("distance").filter(at.is_valid()))

    def records(self, number: int, begin: int, end: int) -> Iterator[WholeRecord]:
        """Yield the whole records of a range of offsets, in order."""
        yield from records_in(self.topic, self.record_rows(number, begin, end))

    def record_rows(self, number: int, begin: int, end: int) -> Any:
        """Return the whole records of a range of offsets as rows of `RECORD_SCHEMA`, in order."""
        files = self.packets.within("offset", begin, end - 1, partition=[number])
        rows = self._files.rows(files, "offset", [(begin, end - 1)], RECORD_SCHEMA.names[2:])
        if rows is None:
            return RECORD_SCHEMA.empty_table()
        rows = rows.add_column(0, "partition", pa.array([number] * len(rows), pa.int32()))
        rows = rows.add_column(0, "day", rows.column("timestamp").cast(pa.date32()))
        return rows.cast(RECORD_SCHEMA).sort_by("offset")

    def page(self, number: int, begin: int, end: int, most: int) -> tuple[Any, int]:
        """Return the first whole records of a range of offsets, and where to go on.

        Args:
            number: Of the partition.
            begin: The first offset.
            end: The offset after the last one.
            most: The portion that reaches so much is the last. [byte]
        """
        found, size = [RECORD_SCHEMA.empty_table()], 0
        while begin < end and size < most:
            found.append(self.record_rows(number, begin, after := min(begin + PORTION, end)))
            size, begin = size + found[-1].nbytes, after
        return pa.concat_tables(found), begin

    def value(self, number: int, offset: int) -> bytes | None:
        """Return the value of one whole record; None where it is not kept."""
        files = self.packets.within("offset", offset, offset, partition=[number])
        rows = self._files.rows(files, "offset", [(offset, offset)], ["value"])
        return None if not rows else rows.column(0)[0].as_py()

    def position(self, number: int) -> int:
        """Return the offset after the last one of a partition that is archived."""
        return self.packets.position((self.topic, number)) or 0

    def offsets(self, number: int, begin: int, end: int) -> list[int]:
        """Return the offsets of a range that have a row, each as often as it has one."""
        files = self.alerts.within("offset", begin, end - 1)
        rows = self._files.rows(files, "offset", [(begin, end - 1)], ["offset", "partition"])
        if rows is None:
            return []
        found = rows.filter(pc.equal(rows.column("partition"), number)).column("offset")
        return found.to_pylist()  # type: ignore[no-any-return]

    def first_since(self, number: int, time_ms: int) -> int | None:
        """Return the first offset of a partition that was written at *time_ms* or later."""
        if time_ms > MAX_TIMESTAMP:
            return None
        moment = pa.scalar(datetime.fromtimestamp(time_ms / 1000, UTC), pa.timestamp("us", tz="UTC"))
        found: int | None = None
        for file in self.packets.within("timestamp", moment, None, order="offset", partition=[number]):
            rows = self._files.rows([file], "timestamp", [(moment, FAR)], ["offset"])
            first = pc.min(rows.column("offset")).as_py() if rows is not None else None
            if found is not None and (first is None or first > found):
                break
            found = first if found is None or first is None else min(found, first)
        return found


def _at(pixels: Sequence[int]) -> str:
    """Return SQL that holds for *pixels*, which are in order; of many, for some between, too."""
    if len(pixels) <= MANY:
        return f"_healpix_29 IN ({', '.join(map(str, pixels))})"
    ranges = joined([(one, one) for one in pixels], MOST_RANGES)
    within = " OR ".join(f"_healpix_29 BETWEEN {low} AND {high}" for low, high in ranges)
    return f"_healpix_29 BETWEEN {pixels[0]} AND {pixels[-1]} AND ({within})"


def quoted(column: str) -> str:
    """Return a column's name, ``diaSource.psfFlux``, as SQL selects it."""
    return column if column == "*" else ".".join(f'"{part}"' for part in column.split("."))


def _positions(rows: Any, partition: str = "partition", offset: str = "offset") -> Iterator[tuple[int, int]]:
    return zip(rows.column(partition).to_pylist(), rows.column(offset).to_pylist(), strict=True)
