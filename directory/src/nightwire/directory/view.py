"""The directory as SQLite tables: fed by records, asked by SQL that can only read."""

import sqlite3
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightwire.directory.liveness import GONE, LATE, Holder, LogClock, next_holder
from nightwire.directory.schema import SCHEMA
from nightwire.schemas import MendableError

LONGEST = 2.0
"""Longest run of a question. [s]"""
MOST_ROWS = 10_000
"""Most rows of an answer."""
MAX_SQL = 64 << 10
"""Longest question, and longest value in an answer's making. [byte]"""
MAX_VALUE = 1 << 20
STEPS = 1000
"""Instructions of SQLite between two looks at the clock."""
READS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
FIELDS = ("owner", "survey", "topic", "endpoints", "capabilities", "interval")


class QueryError(MendableError):
    """A question is refused; the message says why."""


@dataclass(frozen=True)
class Rows:
    """An answer.

    Attributes:
        columns: Their names.
        rows: The rows, in the order of the question.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]


class View:
    """What is known of the directory; written by one thread, asked by many.

    Args:
        clock: The log's clock.

    Attributes:
        refused: Records that could not stand in the directory.
    """

    def __init__(self, clock: LogClock | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nightwire-directory-")
        self._path = Path(self._folder.name) / "view.sqlite"
        self._clock, self._holders = clock or LogClock(), dict[str, Holder]()
        self.refused = 0
        self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {SCHEMA}")
        self._db.execute("INSERT INTO clock VALUES (0, ?, ?)", (LATE, GONE))

    def close(self) -> None:
        """Forget everything."""
        self._db.close()
        self._folder.cleanup()

    def begin(self) -> None:
        """Begin a batch of records: questions see all of it or nothing."""
        self._db.execute("BEGIN")

    def commit(self) -> None:
        """Let questions see the batch."""
        self._db.execute("UPDATE clock SET now = ?", (self._clock.now,))
        self._db.execute("COMMIT")

    def put(self, key: str, found: Mapping[str, Any], appended: int) -> None:
        """Note an entry that Kafka appended at *appended*. [ms since 1970]"""
        now = self._clock.advance(appended)
        holder, counts = next_holder(self._holders.get(key), found["instance"], now, ended=found["ended"])
        self._holders[key] = holder
        if not counts:
            self._db.execute("UPDATE entries SET rivals = ? WHERE key = ?", (holder.rivals, key))
            return
        names = ("key", "site", "kind", "name", *FIELDS, "ended", "heartbeat", "heard", "rivals")
        values = (key, *(found[name] for name in ("site", "kind", "name", *FIELDS)))
        self._db.execute(
            f"INSERT OR REPLACE INTO entries ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",  # noqa: S608
            (*values, holder.ended, holder.heartbeat, appended, holder.rivals),
        )

    def remove(self, key: str) -> None:
        """Forget the entry of *key*: it was taken out."""
        self._holders.pop(key, None)
        self._db.execute("DELETE FROM entries WHERE key = ?", (key,))

    def put_filter(self, owner: str, name: str, found: Mapping[str, Any] | None, topic: str) -> None:
        """Note which version of a filter is live; None for none."""
        self._db.execute("DELETE FROM known_filters WHERE owner = ? AND name = ?", (owner, name))
        if found is not None:
            row = (owner, name, found["version"], found["survey"], topic, found["cap"], found["live"])
            self._db.execute("INSERT INTO known_filters VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def set_topics(self, topics: Iterable[tuple[str, int]]) -> None:
        """Note which topics there are, with their partitions."""
        self._db.execute("DELETE FROM known_topics")
        self._db.executemany("INSERT INTO known_topics VALUES (?, ?)", topics)

    def query(self, sql: str, *, longest: float = LONGEST, most: int = MOST_ROWS) -> Rows:
        """Return the answer to *sql*.

        Args:
            sql: One statement that reads.
            longest: Longest run. [s]
            most: Most rows.

        Raises:
            QueryError: It does more than read, is no SQL, runs too long or has too many rows.
        """
        if len(sql.encode(errors="replace")) > MAX_SQL:
            raise QueryError(f"the question is longer than {MAX_SQL} bytes")
        db = self._reader(time.monotonic() + longest)
        try:
            cursor = db.execute(sql)
            rows = cursor.fetchmany(most + 1)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, ValueError) as error:
            raise QueryError(_reason(error, longest)) from error
        finally:
            db.close()
        if len(rows) > most:
            raise QueryError(f"more than {most} rows: ask for fewer (LIMIT {most})")
        return Rows([column[0] for column in cursor.description or ()], rows)

    def _reader(self, deadline: float) -> sqlite3.Connection:
        db = sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        db.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY)
        db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
        return db


def _reason(error: Exception, longest: float) -> str:
    text = str(error)
    if text == "interrupted":
        return f"the question ran longer than {longest:g} s: ask for less"
    if text == "not authorized" or text.startswith("attempt to write"):
        return "the directory answers SELECT alone"
    return f"SQL: {text}"
