"""Which events are known: hash of the element → where its first record lies in `voevents`.

The log decides.  This index only follows it, and may be thrown away: it is rebuilt from the log.  It lies
in a SQLite file (write-ahead log, so that one thread writes while another reads).
"""

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS event (
    hash BLOB PRIMARY KEY, partition INTEGER NOT NULL, offset INTEGER NOT NULL, seen INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS position (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS log (identity TEXT NOT NULL);
"""
DAY = 86_400


@dataclass(frozen=True)
class Sighting:
    """One record of `voevents`: the hash of its element, and where it lies."""

    hash: bytes
    partition: int
    offset: int


class EventIndex:
    """The index in one file.  Each thread opens its own.

    Args:
        path: The file; made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def follows(self, identity: str) -> bool:
        """Say whether the index was made from the log *identity*; if not, empty it and make it so."""
        known = self._database.execute("SELECT identity FROM log").fetchone()
        if known == (identity,):
            return True
        self._database.execute("BEGIN IMMEDIATE")
        for table in ("event", "position", "log"):
            self._database.execute(f"DELETE FROM {table}")  # noqa: S608  (three names, above)
        self._database.execute("INSERT INTO log VALUES (?)", (identity,))
        self._database.execute("COMMIT")
        return known is None

    def knows(self, digest: bytes) -> bool:
        """Say whether an event with this hash is in the log."""
        return self.first(digest) is not None

    def first(self, digest: bytes) -> tuple[int, int] | None:
        """Return partition and offset of the first record with this hash, or None."""
        found = self._database.execute("SELECT partition, offset FROM event WHERE hash = ?", (digest,))
        with closing(found) as rows:
            row: tuple[int, int] | None = rows.fetchone()
        return row

    def positions(self) -> dict[int, int]:
        """Return the next offset to read of each partition."""
        return dict(self._database.execute("SELECT partition, next FROM position").fetchall())

    def add(self, sightings: Iterable[Sighting], positions: dict[int, int]) -> None:
        """Note *sightings*, in log order, and that the log was read up to *positions*: both or neither."""
        now = int(time.time())
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany(
            "INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?)",
            ((one.hash, one.partition, one.offset, now) for one in sightings),
        )
        self._database.executemany("INSERT OR REPLACE INTO position VALUES (?, ?)", positions.items())
        self._database.execute("COMMIT")

    def forget(self, days: float) -> int:
        """Drop what was seen more than *days* ago; return how many."""
        before = int(time.time() - days * DAY)
        return self._database.execute("DELETE FROM event WHERE seen < ?", (before,)).rowcount
