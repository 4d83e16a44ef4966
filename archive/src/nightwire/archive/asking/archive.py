"""The reader of an archive: alerts by id, object, cone and SQL, and whole, with their stamps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from nightwire.archive.asking.cone import Cone
from nightwire.archive.asking.engine import LIMIT, Engine, QuestionError
from nightwire.archive.asking.light_curve import ATTRIBUTES, merged
from nightwire.archive.asking.questions import Questions
from nightwire.archive.asking.survey_tables import SurveyTables
from nightwire.archive.storage import SCHEMAS_FOLDER, ArchiveError, SchemaStore, Store, WholeRecord
from nightwire.archive.writing import CANONICAL
from nightwire.schemas import AlertDecoder, Decoded, meant
from nightwire.schemas import survey as survey_called

CHOSEN: Sequence[str] = (*CANONICAL, "partition", "offset", "schema_id")
"""Columns of an answer, where no others are asked for."""


class Archive(AbstractContextManager["Archive"]):
    """Reads an archive; while others write it, too.  Safe to share between threads.

    Args:
        url: A folder, or ``s3://BUCKET/PREFIX``.

    Raises:
        ArchiveError: It is neither.
    """

    def __init__(self, url: str | Path) -> None:
        self.store = Store(url)
        self._engine, self._questions = Engine(self.store), Questions(self.store)
        self._tables: dict[str, SurveyTables] = {}
        self._schemas = SchemaStore(self.store)
        self._decoder = AlertDecoder(self._schemas)

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was opened."""
        self._engine.close()
        self._questions.close()

    @property
    def surveys(self) -> list[str]:
        """The surveys that have alerts here."""
        return [name for name in self.store.folders() if name != SCHEMAS_FOLDER]

    def of(self, survey: str | None = None) -> SurveyTables:
        """Return the tables of *survey*, as they are now; None where there is but one.

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
        """Return the files that are the table of a survey's columns now, for other programs."""
        return self.of(survey).alerts.all()

    def get(self, alert_id: int | str, survey: str | None = None, columns: Sequence[str] = CHOSEN) -> Any:
        """Return the rows of the alerts with an id, mostly one, as an Arrow table.

        Args:
            alert_id: The survey's.
            survey: Its name; None where the archive has one alone.
            columns: What is wanted; ``*`` is all.

        Raises:
            ArchiveError: There is no such survey.
        """
        return self.of(survey).by_key("id", str(alert_id), columns)

    def object(self, object_id: int | str, survey: str | None = None, columns: Sequence[str] = CHOSEN) -> Any:
        """Return the rows of all alerts of an object, or of a solar-system object, by time."""
        return self.of(survey).by_key("object", str(object_id), columns)

    def cone(
        self,
        ra: float,
        dec: float,
        radius: float,
        survey: str | None = None,
        columns: Sequence[str] = CHOSEN,
        most: int | None = None,
    ) -> Any:
        """Return the rows of the alerts within *radius* [deg] of a position [deg, ICRS].

        The nearest come first; ``distance`` [deg] is a further column.  At *most* so many are
        looked at.

        Raises:
            ArchiveError: There is no such survey, the numbers are no cone, or it is too large.
        """
        return self.of(survey).cone(Cone(ra, dec, radius), columns, most)

    def query(self, sql: str, *, limit: float = LIMIT) -> Any:
        """Return the answer to a SELECT over ``lsst``, ``lsst_packets`` and so on.

        Args:
            sql: DuckDB's; nothing can be written.
            limit: Longest time. [s]

        Raises:
            QuestionError: It cannot be answered; the message names what and where.
        """
        self._look_for(sql)
        return self._engine.answer(sql, limit=limit)

    def query_apart(self, sql: str, *, most: int, limit: float, most_bytes: int) -> Any:
        """Return the same of a stranger's SELECT, bounded as `Engine.answer` says.

        By a process that is killed where it must be.

        Raises:
            QuestionError: It cannot be answered; the message names what and where.
            BusyError: Too many ask.
        """
        self._look_for(sql)
        return self._questions.answer(sql, self._engine.views, most, limit, most_bytes)

    def _look_for(self, sql: str) -> None:
        """Find what was archived since, of the surveys that a question names."""
        for name in self.surveys:
            if re.search(rf"\b{re.escape(name)}(_packets)?\b", sql):
                self.of(name)

    def whole(self, alert_id: int | str, survey: str | None = None) -> list[WholeRecord]:
        """Return the whole alerts with an id, as they lay in Kafka, with their stamps."""
        return list(self.whole_of(self.get(alert_id, survey, ("partition", "offset")), survey))

    def newest(self, alert_id: int | str, survey: str | None = None) -> Decoded | None:
        """Return the newest alert with an id that is kept whole, decoded; None where none is.

        Raises:
            DecodeError: It holds none.
            UnknownSchemaError: The archive has not its schema.
        """
        tables = self.of(survey)
        positions = tables.by_key("id", str(alert_id), ("partition", "offset")).to_pylist()
        for at in reversed(positions):
            if (value := tables.value(at["partition"], at["offset"])) is not None:
                return self._decoder.decode(value)
        return None

    def whole_of(self, rows: Any, survey: str | None = None) -> Iterator[WholeRecord]:
        """Yield the whole alerts of *rows*, which have columns ``partition`` and ``offset``.

        Raises:
            ArchiveError: They have not.
        """
        if not {"partition", "offset"} <= set(rows.schema.names):
            raise ArchiveError(
                "whole alerts are found by the columns partition and offset: ask for these too"
            )
        yield from self._whole(self.of(survey), rows)

    def _whole(self, tables: SurveyTables, rows: Any) -> Iterator[WholeRecord]:
        numbers, offsets = rows.column("partition").to_pylist(), rows.column("offset").to_pylist()
        for number, offset in zip(numbers, offsets, strict=True):
            yield from tables.records(number, offset, offset + 1)

    def decode(self, record: WholeRecord) -> Decoded:
        """Return the alert in a whole record, by the schema that is kept here.

        Raises:
            DecodeError: It holds none.
            UnknownSchemaError: The archive has not its schema.
        """
        return self._decoder.decode(record.value or b"")

    def light_curve(self, object_id: int | str, survey: str | None = None) -> Any:
        """Return the light curve of an object: of all its alerts and of their histories.

        The newest alert has the survey's history of it; an older one is opened for what came before
        the oldest point of that, and so on.  Columns: ``mjd_tai``, ``band``, ``flux``,
        ``flux_error`` [nJy], ``ra``, ``dec`` [deg].
        """
        tables = self.of(survey)
        rows = self.object(object_id, tables.survey)
        if not len(rows):
            return merged(())
        detections = {name: rows.column(name).to_numpy(zero_copy_only=False) for name in ATTRIBUTES}
        return merged([*self._histories(tables, rows), detections])

    def _histories(self, tables: SurveyTables, rows: Any) -> list[Mapping[str, Any]]:
        """Return the light curves in the alerts that are needed, the oldest first."""
        view = survey_called(tables.survey).view
        found: list[Mapping[str, Any]] = []
        before = float("inf")
        for at in range(len(rows) - 1, -1, -1):
            time = rows.column("mjd_tai")[at].as_py()
            if time is None or not time < before:  # without a time, or known already
                continue
            for record in self._whole(tables, rows.slice(at, 1)):
                curve = view(self.decode(record).alert).light_curve()
                before = min([before, time, *curve["mjd_tai"].tolist()])
                found.append(curve)
        return found[::-1]


def columns_in(text: str | None) -> Sequence[str]:
    """Return the columns that somebody asks for.

    Args:
        text: Names with commas between them; None for the canonical ones.

    Raises:
        QuestionError: One is no name.
    """
    if text is None:
        return CHOSEN
    names = [one.strip() for one in text.split(",")]
    if wrong := [one for one in names if not re.fullmatch(r"\*|\w+(\.\w+)*", one)]:
        raise QuestionError(f"{wrong[0]!r} is no column")
    return names
