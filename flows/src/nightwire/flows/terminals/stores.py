"""Files and databases: an event is a line, or a row with its identity as key."""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from nightwire.core.outside import Refused, Unavailable
from nightwire.flows.terminals.terminal import ENV_PREFIX, EventView, Terminal, secret

FILES_ADVICE = '--name NAME --files FOLDER, and let at = "NAME" say so'


@dataclass(frozen=True)
class JsonLinesFile(Terminal):
    """Appends events to a file, a JSON object a line; after a crash one may be there twice.

    The torn line of a full disk, or of a killed worker, is a line of its own.

    Attributes:
        folder: The worker's folder of files; None for none.
        path: Path of the file in the folder.
    """

    folder: Path | None
    path: str

    def deliver(self, event: EventView) -> None:
        """Append *event*; on return the disk has it.

        Raises:
            Unavailable: The disk does not take it.
            Refused: The path leads out of the folder.
        """
        file = path_below(self.folder, self.path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a+b") as out:
                torn = out.tell() and out.seek(-1, os.SEEK_END) and out.read() != b"\n"
                out.write(b"\n" * bool(torn) + event.body() + b"\n")
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise Unavailable(str(error)) from error


def path_below(folder: Path | None, path: str) -> Path:
    """Return the file *path* below *folder*.

    Raises:
        Unavailable: This worker has no folder: another one may.
        Refused: The path leads out of the folder.
    """
    if folder is None:
        raise Unavailable(f"this worker writes no files: start one with {FILES_ADVICE}")
    file = (folder / path).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise Refused(f"{path!r} leads out of the folder of files")
    return file


@dataclass
class DatabaseTable(Terminal):
    """Inserts events into a table, each once: columns id, flow, event (JSON).

    Attributes:
        url: SQLAlchemy's URL, or the variable that holds it.
        name: Name of the table, which is made where it is missing.
        folder: The worker's folder of files, SQLite's too; None for none.
    """

    url: str
    name: str
    folder: Path | None = None

    @cached_property
    def _table(self) -> sql.Table:
        columns = (
            sql.Column("id", sql.String(255), primary_key=True),
            sql.Column("flow", sql.String(36), primary_key=True),
            sql.Column("event", sql.Text, nullable=False),
        )
        return sql.Table(self.name, sql.MetaData(), *columns)

    @cached_property
    def _engine(self) -> sql.Engine:
        url = sql.make_url(secret(self.url))
        if url.get_backend_name() == "sqlite" and not self.url.startswith(ENV_PREFIX):
            file = path_below(self.folder, url.database or "")
            url = sql.URL.create("sqlite", database=str(file))
            file.parent.mkdir(parents=True, exist_ok=True)
        engine = sql.create_engine(url)
        self._table.metadata.create_all(engine)
        return engine

    def deliver(self, event: EventView) -> None:
        """Insert *event*, unless it is there.

        Raises:
            Unavailable: The database does not take it.
            Refused: The URL or the table does not fit.
        """
        row = {"id": event.identity, "flow": event.flow, "event": json.dumps(event.fields)}
        try:
            with self._engine.begin() as connection:
                connection.execute(self._table.insert(), row)
        except IntegrityError as error:
            if not self._has(event):
                raise Refused(f"the table does not take it: {error.orig}") from error
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise Refused(f"no database: {error}") from error
        except (SQLAlchemyError, OSError) as error:
            raise Unavailable(str(error)) from error

    def _has(self, event: EventView) -> bool:
        keys = self._table.c
        query = sql.select(keys.id).where(keys.id == event.identity, keys.flow == event.flow)
        try:
            with self._engine.connect() as connection:
                return connection.execute(query).first() is not None
        except SQLAlchemyError as error:
            raise Unavailable(str(error)) from error

    def close(self) -> None:
        """Close the connections."""
        if "_engine" in vars(self):
            self._engine.dispose()
