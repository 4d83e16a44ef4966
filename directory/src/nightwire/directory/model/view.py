"""The directory as SQLite tables: written by site, asked by SQL that can only read."""

import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightwire.directory.model.flow_views import FLOW_VIEWS
from nightwire.directory.model.liveness import GONE, LATE
from nightwire.directory.model.registry_views import REGISTRY_VIEWS, ivoid
from nightwire.directory.model.schema import SCHEMA
from nightwire.schemas import MendableError

LONGEST = 2.0
"""Longest run of a question. [s]"""
MOST_ROWS = 10_000
"""Most rows of an answer."""
MAX_SQL = 64 << 10
"""Longest question, longest value in an answer's making, and longest answer. [byte]"""
MAX_VALUE = 1 << 20
MAX_ANSWER = 32 << 20
STEPS = 1000
"""Instructions of SQLite between two looks at the clock."""
READS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


class QueryError(MendableError):
    """A question is refused; the message says why."""


class TooLongError(QueryError):
    """A question takes longer than it may."""


@dataclass(frozen=True)
class Rows:
    """An answer.

    Attributes:
        columns: Their names.
        rows: The rows, in the order of the question.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Reader(threading.local):
    """A connection of each thread that can only read, and its time.

    Args:
        path: The database.
    """

    def __init__(self, path: Path) -> None:
        self.deadline = 0.0
        self.db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        self.db.create_function("ivoid", 3, ivoid, deterministic=True)
        self.db.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY
        )
        self.db.set_progress_handler(lambda: time.monotonic() > self.deadline, STEPS)


class View:
    """What is known of the directory; written by few (`site_rows.SiteRows`), asked by many.

    Attributes:
        db: Where it is written.
        lock: Held by whoever writes.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nightwire-directory-")
        path = Path(self._folder.name) / "view.sqlite"
        self.lock = threading.RLock()
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        tables = SCHEMA + FLOW_VIEWS + REGISTRY_VIEWS
        self.db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {tables}")
        self.db.execute("INSERT INTO limits VALUES (?, ?)", (LATE, GONE))
        self._reader = Reader(path)

    def close(self) -> None:
        """Forget everything."""
        self.db.close()
        self._folder.cleanup()

    def query(self, sql: str, *values: object, longest: float = LONGEST, most: int = MOST_ROWS) -> Rows:
        """Return the answer to *sql*.

        Args:
            sql: One statement that reads.
            values: What its ``?`` stand for.
            longest: Longest run. [s]
            most: Most rows.

        Raises:
            TooLongError: It runs too long.
            QueryError: It does more than read, is no SQL, or has too many rows.
        """
        if len(sql.encode(errors="replace")) > MAX_SQL:
            raise QueryError(f"the question is longer than {MAX_SQL} bytes")
        reader = self._reader
        reader.deadline = time.monotonic() + longest
        try:
            with closing(reader.db.execute(sql, values)) as cursor:
                columns = [column[0] for column in cursor.description or ()]
                rows = bounded(cursor, most)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, ValueError) as error:
            raise _refusal(error, longest) from error
        return Rows(columns, rows)


def bounded(rows: Iterable[tuple[Any, ...]], most: int) -> list[tuple[Any, ...]]:
    """Return *rows*.

    Raises:
        QueryError: There are more than *most*, or they are longer than `MAX_ANSWER`.
    """
    found, size = list[tuple[Any, ...]](), 0
    for row in rows:
        found.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if len(found) > most:
            raise QueryError(f"more than {most} rows: ask for fewer (LIMIT {most})")
        if size > MAX_ANSWER:
            raise QueryError(f"the answer is longer than {MAX_ANSWER >> 20} MiB: ask for less")
    return found


def _refusal(error: Exception, longest: float) -> QueryError:
    text = str(error)
    if text == "interrupted":
        return TooLongError(f"the question ran longer than {longest:g} s: ask for less")
    if text == "not authorized" or text.startswith("attempt to write"):
        return QueryError("the directory answers SELECT alone")
    return QueryError(f"SQL: {text}")
