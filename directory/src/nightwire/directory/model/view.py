"""The directory as a SQLite database: written by site, queried by SQL that can only read."""

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

TIMEOUT = 2.0
"""Longest run of a query. [s]"""
MAX_ROWS = 10_000
"""Most rows of a result."""
MAX_SQL = 64 << 10
"""Longest query, longest value within its run, and longest result. [byte]"""
MAX_VALUE = 1 << 20
MAX_ANSWER = 32 << 20
PROGRESS_STEPS = 1000
"""Instructions of SQLite between two checks of the deadline."""
ALLOWED_ACTIONS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


class QueryError(MendableError):
    """A query is refused; the message says why."""


class QueryTimeoutError(QueryError):
    """A query takes longer than it may."""


@dataclass(frozen=True)
class Rows:
    """The result of a query.

    Attributes:
        columns: Names.
        rows: In the order of the query.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class ReadConnections(threading.local):
    """A read-only connection of each thread, and the deadline of its query.

    Args:
        path: The database.
    """

    def __init__(self, path: Path) -> None:
        self.deadline = 0.0
        self.db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        self.db.create_function("ivoid", 3, ivoid, deterministic=True)
        self.db.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED_ACTIONS else sqlite3.SQLITE_DENY
        )
        self.db.set_progress_handler(lambda: time.monotonic() > self.deadline, PROGRESS_STEPS)


class View:
    """The database; written by few (`site_rows.SiteRows`), queried by many.

    Attributes:
        db: The connection that writes.
        lock: Held while writing.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nightwire-directory-")
        path = Path(self._folder.name) / "view.sqlite"
        self.lock = threading.RLock()
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        tables = SCHEMA + FLOW_VIEWS + REGISTRY_VIEWS
        self.db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {tables}")
        self.db.execute("INSERT INTO limits VALUES (?, ?)", (LATE, GONE))
        self._connections = ReadConnections(path)

    def close(self) -> None:
        """Delete the database."""
        self.db.close()
        self._folder.cleanup()

    def query(self, sql: str, *values: object, timeout: float = TIMEOUT, max_rows: int = MAX_ROWS) -> Rows:
        """Return the answer to *sql*.

        Args:
            sql: One statement that reads.
            values: Of its ``?``.
            timeout: Longest run. [s]
            max_rows: Most rows.

        Raises:
            QueryTimeoutError: It runs too long.
            QueryError: It does more than read, is no SQL, or has too many rows.
        """
        if len(sql.encode(errors="replace")) > MAX_SQL:
            raise QueryError(f"the question is longer than {MAX_SQL} bytes")
        connection = self._connections
        connection.deadline = time.monotonic() + timeout
        try:
            with closing(connection.db.execute(sql, values)) as cursor:
                columns = [column[0] for column in cursor.description or ()]
                rows = fetch_bounded(cursor, max_rows)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, ValueError) as error:
            raise _refusal(error, timeout) from error
        return Rows(columns, rows)


def fetch_bounded(rows: Iterable[tuple[Any, ...]], max_rows: int) -> list[tuple[Any, ...]]:
    """Return *rows*.

    Raises:
        QueryError: There are more than *max_rows*, or they are longer than `MAX_ANSWER`.
    """
    found, size = list[tuple[Any, ...]](), 0
    for row in rows:
        found.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if len(found) > max_rows:
            raise QueryError(f"more than {max_rows} rows: ask for fewer (LIMIT {max_rows})")
        if size > MAX_ANSWER:
            raise QueryError(f"the answer is longer than {MAX_ANSWER >> 20} MiB: ask for less")
    return found


def _refusal(error: Exception, timeout: float) -> QueryError:
    text = str(error)
    if text == "interrupted":
        return QueryTimeoutError(f"the question ran longer than {timeout:g} s: ask for less")
    if text == "not authorized" or text.startswith("attempt to write"):
        return QueryError("the directory answers SELECT alone")
    return QueryError(f"SQL: {text}")
