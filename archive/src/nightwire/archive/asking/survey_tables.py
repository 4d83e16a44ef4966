"""The tables of one survey as they are asked: by id, by object, by place, by offset."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow.compute as pc

from nightwire.archive.asking.cone import Cone
from nightwire.archive.asking.engine import Engine, source
from nightwire.archive.asking.file_list import FileList
from nightwire.archive.storage import (
    ALERTS,
    INDEX,
    PACKETS,
    SCHEMA,
    ArchiveError,
    Place,
    Table,
    WholeRecord,
    records_in,
)
from nightwire.schemas.topics import alerts as topic_of

PLACE = 'night, npix, _healpix_29, partition, "offset"'
"""Columns that tell where an alert lies, in SQL."""
IN_TIME = 'mjd_tai, partition, "offset"'
"""The order of answers, in SQL."""
SCHEMA_NAMES = ", ".join(f'"{name}"' for name in SCHEMA.names)
OFFSETS = '"offset" BETWEEN $1 AND $2'
FRESH = 1.0
"""For so long it is believed that a table is as it was. [s]"""
HIVE = {
    "alerts": "'night': DATE, 'npix': BIGINT",
    "packets": "'day': DATE, 'partition': INTEGER",
    "index": "'month': VARCHAR, 'kind': VARCHAR",
}
"""Columns of the folders of each table, and their types in SQL."""


class SurveyTables:
    """Asks one survey's tables.

    Args:
        place: Of the archive.
        survey: Its name.
        engine: Answers SQL.
    """

    def __init__(self, place: Place, survey: str, engine: Engine) -> None:
        self.survey, self.topic, self._engine = survey, topic_of(survey), engine
        self.alerts, self.index, self.packets = (
            FileList(Table(place, survey, kind)) for kind in (ALERTS, INDEX, PACKETS)
        )
        self._looked = float("-inf")

    def refresh(self, *, at_once: bool = False) -> None:
        """Look for what was archived since, unless that was done a moment ago.

        Args:
            at_once: Even then.

        Raises:
            StorageError: The store does not answer.
        """
        if (now := time.monotonic()) - self._looked < FRESH and not at_once:
            return
        changed = [one.refresh() for one in (self.packets, self.index, self.alerts)]
        self._looked = now
        for view, files, hive in (
            (self.survey, self.alerts, "alerts"),
            (f"{self.survey}_packets", self.packets, "packets"),
        ):
            if any(changed) and (found := files.all()):
                self._engine.define(view, source(found, HIVE[hive]))

    def by_key(self, kind: str, key: str, columns: str, *, indexed: bool) -> Any:
        """Return the alerts whose id, or object, *key* is; in the order of their time.

        Args:
            kind: ``id`` or ``object``.
            key: As text.
            columns: What is wanted, in SQL.
            indexed: Whether the index has all of these.
        """
        files = self.index.within("key", key, key, kind=[kind])
        chosen = columns if indexed else PLACE
        found = self._selected(chosen, files, "index", f"key = $1 ORDER BY {IN_TIME}", [key])
        return found if indexed else self._widened(found, columns, IN_TIME)

    def cone(
        self,
        cone: Cone,
        columns: str,
        *,
        indexed: bool,
        nights: tuple[date, date] | None = None,
    ) -> Any:
        """Return the alerts within a cone, the nearest first, with their ``distance``. [deg]

        Args:
            cone: Where.
            columns: What is wanted, in SQL.
            indexed: Whether the index has all of these.
            nights: The first and the last night; None for all.
        """
        ranges = cone.ranges
        inside = " OR ".join(f"_healpix_29 BETWEEN {low} AND {high}" for low, high in ranges)
        condition = f"({inside}) AND distance <= {cone.radius!r}"
        if nights is not None:
            condition += f" AND night BETWEEN '{nights[0]}' AND '{nights[1]}'"
        files = self.index.within("_healpix_29", ranges[0][0], ranges[-1][1], kind=["place"])
        chosen = f"{columns if indexed else PLACE}, {cone.distance} AS distance"
        found = self._selected(chosen, files, "index", f"{condition} ORDER BY distance, {IN_TIME}")
        if indexed:
            return found
        return self._widened(found, f"{columns}, {cone.distance} AS distance", f"distance, {IN_TIME}")

    def records(self, number: int, begin: int, end: int, most: int) -> Iterator[WholeRecord]:
        """Yield whole records of a range of offsets, at most so many, in order."""
        yield from records_in(self.topic, self.record_rows(number, begin, end, most))

    def record_rows(self, number: int, begin: int, end: int, most: int) -> Any:
        """Return whole records of a range of offsets as rows of `SCHEMA`, at most so many."""
        files = self.packets.within("offset", begin, end - 1, partition=[number])
        if not files or begin >= end:
            return SCHEMA.empty_table()
        rest = f'partition = {number} AND {OFFSETS} ORDER BY "offset" LIMIT {most}'
        return self._selected(SCHEMA_NAMES, files, "packets", rest, [begin, end - 1]).cast(SCHEMA)

    def position(self, number: int) -> int:
        """Return the offset after the last one of a partition that is archived."""
        return self.packets.position((self.topic, number)) or 0

    def offsets(self, number: int, begin: int, end: int) -> list[int]:
        """Return the offsets of a range that have a row, each as often as it has one."""
        files = self.alerts.within("offset", begin, end - 1)
        if not files:
            return []
        rest = f"partition = {number} AND {OFFSETS}"
        found = self._selected('"offset"', files, "alerts", rest, [begin, end - 1])
        return found.column("offset").to_pylist()  # type: ignore[no-any-return]

    def first_since(self, number: int, time_ms: int) -> int | None:
        """Return the first offset of a partition that was written at *time_ms* or later."""
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
        files = self.packets.within("timestamp", moment, None, partition=[number])
        if not files:
            return None
        rest = f'partition = {number} AND "timestamp" >= $1'
        found = self._selected('min("offset") AS first', files, "packets", rest, [moment])
        return found.column("first")[0].as_py()  # type: ignore[no-any-return]

    def _selected(
        self, columns: str, files: Sequence[str], table: str, rest: str, parameters: Sequence[Any] = ()
    ) -> Any:
        """Return *columns* of the rows of a table's *files* where *rest* holds."""
        where = "WHERE false" if not files else f"WHERE {rest}"
        there = files or self.index.all()[:1]
        if not there:
            raise ArchiveError(f"no alerts of {self.survey} are archived yet")
        sql = f"SELECT {columns} FROM {source(there, HIVE[table])} {where}"  # noqa: S608 (names of ours)
        return self._engine.rows(sql, parameters if files else ())

    def _widened(self, places: Any, columns: str, order: str) -> Any:
        """Return all *columns* of the alerts at *places*, of which the index has not all."""
        folders = {name: pc.unique(places.column(name)).to_pylist() for name in ("night", "npix")}
        pixels = pc.unique(places.column("_healpix_29")).to_pylist()
        files = self.alerts.within("_healpix_29", min(pixels, default=0), max(pixels, default=0), **folders)
        numbers = places.column("partition").to_pylist(), places.column("offset").to_pylist()
        wanted = ", ".join(f"({number}, {offset})" for number, offset in zip(*numbers, strict=True))
        there = ", ".join(map(str, pixels))
        condition = f'_healpix_29 IN ({there}) AND (partition, "offset") IN ({wanted}) ORDER BY {order}'
        return self._selected(columns, files, "alerts", condition)
