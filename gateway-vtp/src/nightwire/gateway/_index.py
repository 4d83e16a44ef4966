"""Which events are known: hash of the element → where its first record lies in `voevents`.

The log decides.  This index only follows it, and may be thrown away: it is rebuilt from the log.  How far it
has read is in a SQLite file (write-ahead log, so that one thread writes while another reads), the hashes are
in a table in files beside it.

Entries are written before the position behind them, and writing one again changes nothing; so after a crash
of the process a little is read again.  A crash of the machine may leave a position without its entries: then
the index is lost.
"""

import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nightwire.gateway._hash_table import HashTable, open_table

_TABLES = """
CREATE TABLE IF NOT EXISTS position (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS log (identity TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS unsaved (boot TEXT NOT NULL);
"""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
DAY = 86_400
INTERVAL = 0.5
"""Time between notes of how far the log was read; after a crash the rest is read again. [s]"""


@dataclass(frozen=True)
class Sighting:
    """One record of `voevents`: the hash of its element, and where it lies."""

    hash: bytes
    partition: int
    offset: int


class EventIndex:
    """The index in a file and the folder beside it.  Each thread opens its own; one of them writes.

    Args:
        path: The file; made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.executescript(_TABLES)
        self._read: dict[int, int] = {}
        self._noted = 0.0
        folder = path.with_suffix(".hashes").absolute()
        if not folder.exists() or self._lost():
            self._forget_positions()
        self._table: HashTable = open_table(folder)

    def close(self) -> None:
        """Save what is not on disk, and close the file."""
        if self._table.changed:
            self._note_positions()
            self._table.sync()
            self._database.execute("DELETE FROM unsaved")
            self._table.changed = False
        self._database.close()

    def follows(self, identity: str) -> bool:
        """Say whether the index was made from the log *identity*; if not, empty it and make it so."""
        known = self._database.execute("SELECT identity FROM log").fetchone()
        if known == (identity,):
            return True
        self._forget_positions()
        self._table.forget(before=1 << 32)
        self._database.execute("INSERT INTO log VALUES (?)", (identity,))
        return known is None

    def knows(self, digest: bytes) -> bool:
        """Say whether an event with this hash is in the log."""
        return self._table.find(digest) is not None

    def first(self, digest: bytes) -> tuple[int, int] | None:
        """Return partition and offset of the first record with this hash, or None."""
        return self._table.find(digest)

    def positions(self) -> dict[int, int]:
        """Return the next offset to read of each partition."""
        return dict(self._database.execute("SELECT partition, next FROM position").fetchall()) | self._read

    def add(self, sightings: Iterable[Sighting], positions: dict[int, int]) -> None:
        """Note *sightings*, in log order, and now and then that the log was read up to *positions*."""
        if not self._table.changed:
            self._database.execute("INSERT INTO unsaved VALUES (?)", (_boot(),))
            self._table.changed = True
        now = time.time()
        for one in sightings:
            self._table.add(one.hash, one.partition, one.offset, int(now))
        self._read.update(positions)
        if not 0 <= now - self._noted < INTERVAL:
            self._noted = now
            self._note_positions()

    def forget(self, days: float) -> int:
        """Drop what was seen more than *days* ago; return how many."""
        return self._table.forget(before=int(time.time() - days * DAY))

    def _note_positions(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("INSERT OR REPLACE INTO position VALUES (?, ?)", self._read.items())
        self._database.execute("COMMIT")

    def _lost(self) -> bool:
        """Say whether the machine went down before the hashes were on disk."""
        boots = {boot for (boot,) in self._database.execute("SELECT boot FROM unsaved")}
        return bool(boots - {_boot()})

    def _forget_positions(self) -> None:
        self._read = {}
        self._database.execute("BEGIN IMMEDIATE")
        for table in ("position", "log", "unsaved"):
            self._database.execute(f"DELETE FROM {table}")  # noqa: S608  (three names, above)
        self._database.execute("DROP TABLE IF EXISTS event")  # where hashes were before
        self._database.execute("COMMIT")


def _boot() -> str:
    """Return what tells one start of the machine from another; empty where the system does not say."""
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return ""
