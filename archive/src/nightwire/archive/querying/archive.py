"""The reader of an archive: alerts by id, object, cone and SQL, and whole, with their stamps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from nightwire.archive.querying.cone import Cone
from nightwire.archive.querying.light_curve import ATTRIBUTES, merge
from nightwire.archive.querying.query_workers import QueryWorkers
from nightwire.archive.querying.sql_engine import TIMEOUT, QueryError, SqlEngine
from nightwire.archive.querying.survey_tables import SurveyTables
from nightwire.archive.storage import SCHEMAS_FOLDER, ArchiveError, Packet, SchemaStore, Store
from nightwire.archive.writing import CANONICAL
from nightwire.schemas import AlertDecoder, Decoded, meant
from nightwire.schemas import survey as survey_called

COLUMNS: Sequence[str] = (*CANONICAL, "partition", "offset", "schema_id")
"""Columns of an answer, unless others are asked for."""


class Archive(AbstractContextManager["Archive"]):
    """Reads an archive, also while it is written.  Safe to share between threads.

    Args:
        url: A folder, or ``s3://BUCKET/PREFIX``.

    Raises:
        ArchiveError: The URL is neither.
    """

    def __init__(self, url: str | Path) -> None:
        self.store = Store(url)
        self._engine, self._workers = SqlEngine(self.store), QueryWorkers(self.store)
        self._tables: dict[str, SurveyTables] = {}
        self._schemas = SchemaStore(self.store)
        self._decoder = AlertDecoder(self._schemas)

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the SQL engine, and end its workers."""
        self._engine.close()
        self._workers.close()

    @property
    def surveys(self) -> list[str]:
        """The names of the archived surveys."""
        return [name for name in self.store.folders() if name != SCHEMAS_FOLDER]

    def tables(self, survey: str | None = None) -> SurveyTables:
        """Return the tables of *survey*, refreshed; None: of the only one.

        Raises:
            ArchiveError: The archive has none of that name, or several.
        """
        name = survey or self._only_survey()
        if name not in self._tables:
            if name not in (there := self.surveys):
                raise ArchiveError(
                    f"{self.store}: no alerts of {name!r}; there are: {', '.join(there) or 'none'}"
                    f"{meant(name, there)}"
                )
            self._tables[name] = SurveyTables(self.store, name, self._engine)
        self._tables[name].refresh()
        return self._tables[name]

    def _only_survey(self) -> str:
        there = self.surveys
        if len(there) != 1:
            raise ArchiveError(
                f"{self.store}: name one of the surveys {', '.join(there) or '(none is there)'}"
            )
        return there[0]

    def files(self, survey: str | None = None) -> list[str]:
        """Return the current files of a survey's table `alerts`, for other programs."""
        return self.tables(survey).alerts.all()

    def get(self, alert_id: int | str, survey: str | None = None, columns: Sequence[str] = COLUMNS) -> Any:
        """Return the rows of the alerts with an id, mostly one, as an Arrow table.

        Args:
            alert_id: The survey's id.
            survey: Its name; None for the only one.
            columns: Columns of the answer; ``*`` is all.

        Raises:
            ArchiveError: There is no such survey.
        """
        return self.tables(survey).by_key("id", str(alert_id), columns)

    def object(
        self, object_id: int | str, survey: str | None = None, columns: Sequence[str] = COLUMNS
    ) -> Any:
        """Return the rows of all alerts of an object, or of a solar-system object, by time."""
        return self.tables(survey).by_key("object", str(object_id), columns)

    def cone(
        self,
        ra: float,
        dec: float,
        radius: float,
        survey: str | None = None,
        columns: Sequence[str] = COLUMNS,
        max_rows: int | None = None,
    ) -> Any:
        """Return the rows of the alerts within *radius* [deg] of a position [deg, ICRS].

        The nearest come first; ``distance`` [deg] is a further column.  At most *max_rows* rows of
        the index are read.

        Raises:
            ArchiveError: There is no such survey, the numbers are no cone, or it is too large.
        """
        return self.tables(survey).cone(Cone(ra, dec, radius), columns, max_rows)

    def query(self, sql: str, *, timeout: float = TIMEOUT) -> Any:
        """Return the answer to a SELECT over ``lsst``, ``lsst_packets`` and so on.

        Args:
            sql: DuckDB's; nothing can be written.
            timeout: Longest time. [s]

        Raises:
            QueryError: It cannot be answered; the message names what and where.
        """
        self._refresh_named_in(sql)
        return self._engine.answer(sql, timeout=timeout)

    def query_in_worker(self, sql: str, *, max_rows: int, timeout: float, max_bytes: int) -> Any:
        """Return the answer to an untrusted SELECT, by a worker process.

        The bounds are those of `SqlEngine.answer`.

        Raises:
            QueryError: It cannot be answered; the message names what and where.
            BusyError: No worker became free.
        """
        self._refresh_named_in(sql)
        return self._workers.answer(sql, self._engine.views, max_rows, timeout, max_bytes)

    def _refresh_named_in(self, sql: str) -> None:
        """Refresh the tables of the surveys that a query names; of all if it names none."""
        surveys = self.surveys
        named = [one for one in surveys if re.search(rf"\b{re.escape(one)}(_packets)?\b", sql, re.IGNORECASE)]
        for name in named or surveys:
            self.tables(name)

    def packets(self, alert_id: int | str, survey: str | None = None) -> list[Packet]:
        """Return the packets of an id: whole alerts, with their stamps."""
        return list(self.packets_of(self.get(alert_id, survey, ("partition", "offset")), survey))

    def newest(self, alert_id: int | str, survey: str | None = None) -> Decoded | None:
        """Return the newest alert with an id that is kept whole, decoded; None for none.

        Raises:
            DecodeError: The packet holds no alert.
            UnknownSchemaError: The archive lacks its schema.
        """
        tables = self.tables(survey)
        positions = tables.by_key("id", str(alert_id), ("partition", "offset")).to_pylist()
        for one in reversed(positions):
            if (value := tables.value(one["partition"], one["offset"])) is not None:
                return self._decoder.decode(value)
        return None

    def packets_of(self, rows: Any, survey: str | None = None) -> Iterator[Packet]:
        """Yield the packets of rows with columns ``partition`` and ``offset``.

        Raises:
            ArchiveError: A column is missing.
        """
        if not {"partition", "offset"} <= set(rows.schema.names):
            raise ArchiveError(
                "whole alerts are found by the columns partition and offset: ask for these too"
            )
        tables = self.tables(survey)
        numbers, offsets = rows.column("partition").to_pylist(), rows.column("offset").to_pylist()
        for number, offset in zip(numbers, offsets, strict=True):
            yield from tables.read_packets(number, offset, offset + 1)

    def decode(self, packet: Packet) -> Decoded:
        """Return the alert in a packet, by the archive's own schemas.

        Raises:
            DecodeError: The packet holds no alert.
            UnknownSchemaError: The archive lacks its schema.
        """
        return self._decoder.decode(packet.value or b"")

    def light_curve(self, object_id: int | str, survey: str | None = None) -> Any:
        """Return the light curve of an object, of all its alerts and their histories.

        The newest alert has the survey's history; an older alert is read for the points before the
        oldest of that, and so on.  Columns: ``mjd_tai``, ``band``, ``flux``,
        ``flux_error`` [nJy], ``ra``, ``dec`` [deg].
        """
        tables = self.tables(survey)
        rows = self.object(object_id, tables.survey)
        if not len(rows):
            return merge(())
        detections = {name: rows.column(name).to_numpy(zero_copy_only=False) for name in ATTRIBUTES}
        return merge([*self._histories(tables, rows), detections])

    def _histories(self, tables: SurveyTables, rows: Any) -> list[Mapping[str, Any]]:
        """Return the light curves in the alerts that are read, the oldest first."""
        view = survey_called(tables.survey).view
        found: list[Mapping[str, Any]] = []
        before = float("inf")
        for n in range(len(rows) - 1, -1, -1):
            time = rows.column("mjd_tai")[n].as_py()
            if time is None or not time < before:  # without a time, or known already
                continue
            for packet in self.packets_of(rows.slice(n, 1), tables.survey):
                curve = view(self.decode(packet).alert).light_curve()
                before = min([before, time, *curve["mjd_tai"].tolist()])
                found.append(curve)
        return found[::-1]


def parse_columns(text: str | None) -> Sequence[str]:
    """Return the names of the columns of an answer.

    Args:
        text: Names with commas between them; None for `COLUMNS`.

    Raises:
        QueryError: A name is none.
    """
    if text is None:
        return COLUMNS
    names = [one.strip() for one in text.split(",")]
    if wrong := [one for one in names if not re.fullmatch(r"\*|\w+(\.\w+)*", one)]:
        raise QueryError(f"{wrong[0]!r} is no column")
    return names
