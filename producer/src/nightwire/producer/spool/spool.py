"""Alerts on disk while Kafka is away: one SQLite file.

What is appended survives a killed process at once, and a power cut after `sync`.  A record leaves
in the transaction that counts it for its visit, so that it counts once, however often the process
dies.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from nightwire.core.kafka import DeliveryError, Headers, Record
from nightwire.producer.visits.counts import VisitCounts

SPOOLED_HEADER = "spooled"
"""Header of a record that was in a spool: after a crash it may be in its topic twice."""
PAGE = 64 << 10
"""SQLite's page. [byte]  It is a third faster than 4 kB with values of 120 kB."""
LAYOUT = """
create table if not exists record (
    seq integer primary key autoincrement,
    topic text not null, value blob not null, key blob, headers text not null, visit integer
);
create index if not exists record_visit on record (visit) where visit is not null;
create table if not exists delivered (
    visit integer, part integer, count integer, first integer, last integer, primary key (visit, part)
) without rowid;
create table if not exists refused (
    visit integer, reason text, count integer, primary key (visit, reason)
) without rowid;
create table if not exists ended (visit integer primary key, ledger text not null);
"""


class SpoolError(DeliveryError):
    """The spool cannot be used; the message says why, and what to do."""


class SpoolFullError(SpoolError):
    """The spool has no room for another alert, which was not taken; those taken before are safe."""


@dataclass(frozen=True)
class Ack:
    """Kafka has acknowledged a spooled record: its number here, its partition and offset there."""

    seq: int
    partition: int
    offset: int


class Spool:
    """Records that wait for Kafka, in their order, and the visits that wait for their records.

    For one process, and one thread at a time.

    Args:
        path: The file; it is made where it is missing.
        limit: Bytes of values it may hold; the file is up to a fifth larger.

    Raises:
        SpoolError: Another process uses the file, or it is not a spool.
    """

    def __init__(self, path: Path, *, limit: int) -> None:
        self.path, self.limit = path, limit
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._errors_named():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
            self._db.execute(f"pragma page_size = {PAGE}")
            self._db.execute("pragma locking_mode = exclusive")
            self._db.execute("pragma journal_mode = wal")
            # a commit reaches the kernel, `sync` the disk
            self._db.execute("pragma synchronous = normal")
            self._db.executescript(LAYOUT)
        count, size = self._row("select count(*), coalesce(sum(length(value)), 0) from record")
        self._count, self.bytes = int(count), int(size)

    def __len__(self) -> int:
        """Return how many records there are."""
        return self._count

    @property
    def is_empty(self) -> bool:
        """Whether neither a record nor the end of a visit waits."""
        return not self._count and not self._row("select count(*) from ended")[0]

    def append(self, records: Sequence[tuple[Record, int | None]]) -> list[int]:
        """Keep *records*, each with its visit, all or none; return their ascending numbers.

        Raises:
            SpoolFullError: They do not fit.
            SpoolError: The disk is full, or broken.
        """
        size = sum(len(record.value or b"") for record, _visit in records)
        if self.bytes + size > self.limit:
            raise SpoolFullError(
                f"spool {self.path} is full ({self.bytes:,} of {self.limit:,} bytes): Kafka has been away for"
                " too long; bring it back and offer the alert again, or give the spool more bytes"
            )
        with self._transaction():
            return self._insert(records)

    def after(self, seq: int, room: int) -> Iterator[tuple[int, Record]]:
        """Yield the records after number *seq*, at most *room* bytes and one record more."""
        wanted = "select seq, topic, value, key, headers from record where seq > ? order by seq"
        with self._errors_named(), closing(self._db.execute(wanted, (seq,))) as rows:
            for number, topic, value, key, headers in rows:
                yield number, Record(topic, value, key, [*_unpacked(headers), (SPOOLED_HEADER, b"1")])
                room -= len(value)
                if room <= 0:
                    return

    def delivered(self, acks: Sequence[Ack]) -> None:
        """Count the records that Kafka has acknowledged for their visits, and remove them."""
        with self._transaction():
            for ack in acks:
                self._db.execute(
                    "insert into delivered select visit, ?, 1, ?, ? from record where seq = ? and "
                    "visit is not null on conflict do update set count = count + 1, "
                    "first = min(first, excluded.first), last = max(last, excluded.last)",
                    (ack.partition, ack.offset, ack.offset, ack.seq),
                )
                self._remove(ack.seq)

    def refuse(self, seq: int, reason: str) -> bool:
        """Count a refused record for its visit and remove it; return False without a visit."""
        with self._transaction():
            counted = self._db.execute(
                "insert into refused select visit, ?, 1 from record where seq = ? and visit is not null "
                "on conflict do update set count = count + 1",
                (reason, seq),
            )
            if counted.rowcount:
                self._remove(seq)
            return bool(counted.rowcount)

    def end(self, counts: VisitCounts) -> None:
        """Keep the *counts* of a visit that has ended while records of it are here."""
        with self._transaction():
            self._db.execute("insert or replace into ended values (?, ?)", (counts.visit, counts.as_text()))

    def close_visits(self, closing: Callable[[VisitCounts], Iterable[Record]]) -> list[VisitCounts]:
        """Append the records that close ended visits without records here; return their counts.

        Args:
            closing: Makes the records that close a visit.
        """
        with self._errors_named():
            rows = self._db.execute(
                "select ledger from ended "
                "where not exists (select 1 from record where record.visit = ended.visit)"
            )
            done = [self._summed(VisitCounts.from_text(text)) for (text,) in rows.fetchall()]
        for counts in done:
            with self._transaction():
                self._insert([(record, None) for record in closing(counts)])
                for table in ("ended", "delivered", "refused"):
                    self._db.execute(f"delete from {table} where visit = ?", (counts.visit,))  # noqa: S608
        return done

    def sync(self) -> None:
        """Make the appended records survive a power cut."""
        with self._errors_named():
            self._db.execute("pragma wal_checkpoint(passive)")

    def shrink(self) -> None:
        """Return the disk space of an emptied spool."""
        with self._errors_named():
            self._db.execute("vacuum")
            self._db.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _summed(self, counts: VisitCounts) -> VisitCounts:
        """Return *counts* with the records that were delivered out of the spool."""
        tallies = "select part, count, first, last from delivered where visit = ?"
        for part, count, first, last in self._db.execute(tallies, (counts.visit,)):
            counts.add(part, count, first, last)
        for reason, count in self._db.execute(
            "select reason, count from refused where visit = ?", (counts.visit,)
        ):
            counts.refused[reason] += count
        return counts

    def _insert(self, records: Iterable[tuple[Record, int | None]]) -> list[int]:
        numbers = []
        for record, visit in records:
            value = record.value or b""
            row = (record.topic, value, record.key, _packed(record.headers), visit)
            cursor = self._db.execute(
                "insert into record (topic, value, key, headers, visit) values (?, ?, ?, ?, ?)", row
            )
            numbers.append(int(cursor.lastrowid or 0))
            self._count, self.bytes = self._count + 1, self.bytes + len(value)
        return numbers

    def _remove(self, seq: int) -> None:
        (size,) = self._row("delete from record where seq = ? returning length(value)", seq)
        self._count, self.bytes = self._count - 1, self.bytes - int(size)

    def _row(self, sql: str, *values: object) -> tuple[Any, ...]:
        with self._errors_named():
            return tuple(self._db.execute(sql, values).fetchall()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        before = self._count, self.bytes
        with self._errors_named():
            self._db.execute("begin immediate")
            try:
                yield
                self._db.execute("commit")
            except BaseException:
                self._count, self.bytes = before
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            hint = "another process uses it" if "locked" in str(error) else str(error)
            raise SpoolError(f"spool {self.path}: {hint}") from error


def _packed(headers: Headers) -> str:
    return json.dumps([(name, value.decode("latin-1")) for name, value in headers])


def _unpacked(text: str) -> list[tuple[str, bytes]]:
    return [(name, value.encode("latin-1")) for name, value in json.loads(text)]
