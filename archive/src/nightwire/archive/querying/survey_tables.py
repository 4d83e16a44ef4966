"""Reads of one survey's tables: by id, object, position on the sky, and offset."""

import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nightwire.archive.querying.cone import MAX_RANGES, Cone, merge_ranges
from nightwire.archive.querying.file_list import FileList
from nightwire.archive.querying.sorted_files import SortedFiles
from nightwire.archive.querying.sql_engine import SqlEngine, parquet_source
from nightwire.archive.storage import (
    ALERTS,
    INDEX,
    MAX_TIMESTAMP,
    PACKET_SCHEMA,
    PACKETS,
    ArchiveError,
    Packet,
    StorageError,
    Store,
    Table,
    packets_in,
)
from nightwire.archive.writing import COMMON
from nightwire.schemas.topics import alerts as topic_of

TIME_ORDER = [("mjd_tai", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
"""The order of answers."""
MAX_TIME = pa.scalar(datetime.max.replace(tzinfo=UTC), pa.timestamp("us", tz="UTC"))
"""The latest time there is."""
BATCH_PACKETS = 16
"""Packets that are read together: of the largest, 5 MB."""
MAX_PIXELS = 1000
"""Most pixels of a condition that names each."""
REFRESH_INTERVAL = 1.0
"""Least time between two refreshes. [s]"""
INDEX_CACHE = 64
"""Cached row groups of a survey's index: alerts of one visit have ids near each other.
Some 22 MB for stamps, 100 MB where all columns are asked for."""
PACKET_CACHE = 32
"""Cached row groups of a survey's packets, some 16 MB: of an alert three stamps are asked for,
and its neighbours are of the same visit."""
ALERT_PARTITIONS = "'night': DATE, 'npix': BIGINT"
PACKET_PARTITIONS = "'day': DATE, 'partition': INTEGER"
"""Partition columns, and their types in SQL."""


class SurveyTables:
    """Reads one survey's tables.

    Args:
        store: The archive's.
        survey: Its name.
        engine: Answers SQL.
    """

    def __init__(self, store: Store, survey: str, engine: SqlEngine) -> None:
        self.survey, self.topic, self._engine = survey, topic_of(survey), engine
        self.alerts, self.index, self.packets = (
            FileList(Table(store, survey, layout)) for layout in (ALERTS, INDEX, PACKETS)
        )
        self._files, self._index_files = SortedFiles(store, PACKET_CACHE), SortedFiles(store, INDEX_CACHE)
        self._lock, self._refreshed_at = threading.Lock(), float("-inf")

    def refresh(self, *, force: bool = False) -> None:
        """Read the tables' newest versions, unless that was done a moment ago.

        Args:
            force: Whether to read them even then.

        Raises:
            StorageError: The store does not answer.
        """
        with self._lock:
            if (now := time.monotonic()) - self._refreshed_at >= REFRESH_INTERVAL or force:
                self._refresh()
                self._refreshed_at = now

    def _refresh(self) -> None:
        # the index first: what it has is in the others by then, but for a write under way
        changed = [one.refresh() for one in (self.index, self.packets, self.alerts)]
        for view, files, partitions in (
            (self.survey, self.alerts, ALERT_PARTITIONS),
            (f"{self.survey}_packets", self.packets, PACKET_PARTITIONS),
        ):
            if any(changed) and (found := files.all()):
                try:
                    self._engine.define_view(view, parquet_source(found, partitions))
                except StorageError:
                    files.version = -1  # defined by the next refresh
                    raise

    def by_key(self, kind: str, key: str, columns: Sequence[str]) -> Any:
        """Return the alerts of an id, or of an object, in the order of their time.

        Args:
            kind: ``id`` or ``object``.
            key: The id, as text.
            columns: Columns of the answer; ``*`` is all.
        """
        files = self.index.matching("key", key, key, kind=[kind])
        names = dict.fromkeys([*columns, *(name for name, _ in TIME_ORDER)])
        found = self._index_rows(files, "key", [(key, key)], [*names] if {*names} <= {*COMMON} else COMMON)
        return self._select(found.sort_by(TIME_ORDER) if len(found) > 1 else found, columns)

    def cone(self, cone: Cone, columns: Sequence[str], max_rows: int | None = None) -> Any:
        """Return the alerts within a cone, the nearest first, with their ``distance``. [deg]

        Args:
            cone: The cone.
            columns: Columns of the answer; ``*`` is all.
            max_rows: Most rows of the index that are read; None for any.

        Raises:
            QueryError: More would be read.
        """
        ranges = cone.ranges
        files = self.index.matching("_healpix_29", ranges[0][0], ranges[-1][1], kind=["place"])
        found = self._index_rows(files, "_healpix_29", ranges, max_rows=max_rows)
        found = found.append_column("distance", cone.distances(found.column("ra"), found.column("dec")))
        near = found.filter(pc.less_equal(found.column("distance"), cone.radius))
        return self._select(near.sort_by([("distance", "ascending"), *TIME_ORDER]), [*columns, "distance"])

    def _index_rows(
        self,
        files: Sequence[str],
        column: str,
        ranges: Sequence[tuple[Any, Any]],
        names: Sequence[str] = COMMON,
        max_rows: int | None = None,
    ) -> Any:
        """Return the index rows whose *column* lies in one of *ranges*."""
        found = self._index_files.rows(files, column, ranges, names, max_rows)
        if found is not None:
            return found
        if not (there := self.index.all()[:1]):
            raise ArchiveError(f"no alerts of {self.survey} are archived yet")
        return self._index_files.rows(there, "key", [("", chr(0x10FFFF))], COMMON).slice(0, 0)

    def _select(self, found: Any, columns: Sequence[str]) -> Any:
        """Return *columns* of the alerts in index rows; further ones are read from `alerts`.

        Alerts that `alerts` has not yet, or no longer, are then left out.
        """
        if set(columns) <= set(found.schema.names):
            return found.select(list(columns))
        parts = {name: pc.unique(found.column(name)).to_pylist() for name in ("night", "npix")}
        pixels = pc.unique(found.column("_healpix_29")).to_pylist()
        files = self.alerts.matching("_healpix_29", min(pixels, default=0), max(pixels, default=0), **parts)
        added = {"distance"} & {*found.schema.names}
        names = ", ".join(quoted(one) for one in columns if one not in added)
        condition = _pixel_condition(sorted(pixels) or [-2])
        rows = self._engine.run(
            f'SELECT partition AS "#p", "offset" AS "#o", {names} '  # noqa: S608 (names, quoted)
            f"FROM {parquet_source(files or self.alerts.all()[:1], ALERT_PARTITIONS)} WHERE {condition}"
        )
        known = {one: n for n, one in enumerate(_positions(rows, "#p", "#o"))}
        indices = pa.array([known.get(one) for one in _positions(found)], pa.int64())
        taken = rows.take(indices.drop_null()).drop_columns(["#p", "#o"])
        if not added & {*columns}:
            return taken
        return taken.append_column("distance", found.column("distance").filter(indices.is_valid()))

    def read_packets(self, number: int, begin: int, end: int) -> Iterator[Packet]:
        """Yield the packets of a range of offsets, in order."""
        yield from packets_in(self.topic, self.packet_rows(number, begin, end))

    def packet_rows(self, number: int, begin: int, end: int) -> Any:
        """Return the packets of a range of offsets as rows of `PACKET_SCHEMA`, in order."""
        files = self.packets.matching("offset", begin, end - 1, partition=[number])
        rows = self._files.rows(files, "offset", [(begin, end - 1)], PACKET_SCHEMA.names[2:])
        if rows is None:
            return PACKET_SCHEMA.empty_table()
        rows = rows.add_column(0, "partition", pa.array([number] * len(rows), pa.int32()))
        rows = rows.add_column(0, "day", rows.column("timestamp").cast(pa.date32()))
        return rows.cast(PACKET_SCHEMA).sort_by("offset")

    def page(self, number: int, begin: int, end: int, size: int) -> tuple[Any, int]:
        """Return the first packets of a range of offsets, and the offset after them.

        Args:
            number: The partition's.
            begin: The first offset.
            end: The offset after the last one.
            size: Size at which the page ends, rounded up to a batch. [byte]
        """
        found, read = [PACKET_SCHEMA.empty_table()], 0
        while begin < end and read < size:
            found.append(self.packet_rows(number, begin, after := min(begin + BATCH_PACKETS, end)))
            read, begin = read + found[-1].nbytes, after
        return pa.concat_tables(found), begin

    def value(self, number: int, offset: int) -> bytes | None:
        """Return the value of one packet; None where it is not kept."""
        files = self.packets.matching("offset", offset, offset, partition=[number])
        rows = self._files.rows(files, "offset", [(offset, offset)], ["value"])
        return None if not rows else rows.column(0)[0].as_py()

    def position(self, number: int) -> int:
        """Return the next offset of a partition to archive."""
        return self.packets.table.known_position((self.topic, number)) or 0

    def offsets(self, number: int, begin: int, end: int) -> list[int]:
        """Return the offsets of a range that have rows in `alerts`, each once a row."""
        files = self.alerts.matching("offset", begin, end - 1)
        rows = self._files.rows(files, "offset", [(begin, end - 1)], ["offset", "partition"])
        if rows is None:
            return []
        found = rows.filter(pc.equal(rows.column("partition"), number)).column("offset")
        return found.to_pylist()  # type: ignore[no-any-return]

    def first_since(self, number: int, time_ms: int) -> int | None:
        """Return the first offset of a partition whose packet is of *time_ms* or later."""
        if time_ms > MAX_TIMESTAMP:
            return None
        moment = pa.scalar(datetime.fromtimestamp(time_ms / 1000, UTC), pa.timestamp("us", tz="UTC"))
        found: int | None = None
        for file in self.packets.matching("timestamp", moment, None, order="offset", partition=[number]):
            rows = self._files.rows([file], "timestamp", [(moment, MAX_TIME)], ["offset"])
            first = pc.min(rows.column("offset")).as_py() if rows is not None else None
            if found is not None and (first is None or first > found):
                break
            found = first if found is None or first is None else min(found, first)
        return found


def _pixel_condition(pixels: Sequence[int]) -> str:
    """Return SQL that is true for *pixels*, in order; if they are many, for some between, too."""
    if len(pixels) <= MAX_PIXELS:
        return f"_healpix_29 IN ({', '.join(map(str, pixels))})"
    ranges = merge_ranges([(one, one) for one in pixels], MAX_RANGES)
    within = " OR ".join(f"_healpix_29 BETWEEN {low} AND {high}" for low, high in ranges)
    return f"_healpix_29 BETWEEN {pixels[0]} AND {pixels[-1]} AND ({within})"


def quoted(column: str) -> str:
    """Return a column's name, ``diaSource.psfFlux``, quoted for SQL."""
    return column if column == "*" else ".".join(f'"{part}"' for part in column.split("."))


def _positions(rows: Any, partition: str = "partition", offset: str = "offset") -> Iterator[tuple[int, int]]:
    return zip(rows.column(partition).to_pylist(), rows.column(offset).to_pylist(), strict=True)
