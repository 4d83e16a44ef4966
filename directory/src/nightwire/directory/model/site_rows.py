"""The rows of one site: written as its log, its topics and its consumer groups tell."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nightwire.directory.model.liveness import LATE, LONGEST_STEP, Holder, LogClock, next_holder
from nightwire.directory.model.view import View

FIELDS = ("owner", "survey", "topic", "endpoints", "capabilities", "interval")
COLUMNS = ("site", "kind", "name", *FIELDS, "ended", "heartbeat", "heard", "rivals")
PUT = f"INSERT OR REPLACE INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
TABLES = ("entries", "known_filters", "known_topics", "members")

Key = tuple[str, str]
"""Kind and name of an entry."""
TopicRow = tuple[str, int, float | None, int | None, int | None]
"""A topic, its partitions, records a second, newest record [ms since 1970], newest schema's id."""

MemberRow = tuple[str, str, int, int | None]
"""A consumer group, a topic that it reads, by how many members, and the records that lie ahead."""


class SiteRows:
    """Writes what is known of *site* into *view*.

    Args:
        view: Where to.
        site: Its name.
        bootstrap: How its Kafka is reached.
        registry: URL of its schema registry; empty where it is not known.

    Attributes:
        refused: Records that could not stand in the directory.
    """

    def __init__(self, view: View, site: str, bootstrap: str = "", registry: str = "") -> None:
        self.site, self._view, self._db = site, view, view.db
        self.refused = 0
        with view.lock:
            row = (site, bootstrap, registry)
            self._db.execute("INSERT OR REPLACE INTO known_sites VALUES (?, ?, ?, 0, NULL, 0)", row)
        self.clear()

    def clear(self) -> None:
        """Forget the site's rows: its log is read from its beginning."""
        self._clock, self._holders, self._heard = LogClock(), dict[Key, Holder](), 0
        with self.batch():
            for table in TABLES:
                self._db.execute(f"DELETE FROM {table} WHERE site = ?", (self.site,))  # noqa: S608

    def remove(self) -> None:
        """Forget the site."""
        self.clear()
        with self._view.lock:
            self._db.execute("DELETE FROM known_sites WHERE site = ?", (self.site,))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write what the block writes at once: questions see all of it or nothing."""
        with self._view.lock:
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                row = (self._clock.now, self._heard or None, self.site)
                self._db.execute("UPDATE known_sites SET now = ?, newest = ? WHERE site = ?", row)
                self._db.execute("COMMIT")

    def caught_up(self) -> None:
        """Note that the log was read to its end: from here on it is followed.

        A silence that ends there may have been Kafka's own, so that nobody is gone by it yet.
        """
        self._clock.longest_step = LONGEST_STEP
        doubt = self._clock.now - LATE
        for key, holder in self._holders.items():
            self._holders[key] = replace(holder, heartbeat=max(holder.heartbeat, doubt))
        with self.batch():
            sql = "UPDATE entries SET heartbeat = max(heartbeat, ?) WHERE site = ? AND interval > 0"
            self._db.execute(sql, (doubt, self.site))

    def put(self, found: Mapping[str, Any], appended: int) -> None:
        """Note an entry that Kafka appended at *appended*. [ms since 1970]"""
        now, key = self._clock.advance(appended), (found["kind"], found["name"])
        self._heard = max(self._heard, appended)
        holder, counts = Holder("", now, found["ended"]), True
        if found["interval"]:
            before = self._holders.get(key)
            holder, counts = next_holder(before, found["instance"], now, ended=found["ended"])
            self._holders[key] = holder
        if not counts:
            sql = "UPDATE entries SET rivals = ? WHERE site = ? AND kind = ? AND name = ?"
            self._db.execute(sql, (holder.rivals, self.site, *key))
            return
        said = (found[name] for name in FIELDS)
        self._db.execute(
            PUT, (self.site, *key, *said, holder.ended, holder.heartbeat, appended, holder.rivals)
        )

    def take_out(self, kind: str, name: str) -> None:
        """Forget an entry."""
        self._holders.pop((kind, name), None)
        sql = "DELETE FROM entries WHERE site = ? AND kind = ? AND name = ?"
        self._db.execute(sql, (self.site, kind, name))

    def forgettable(self, grace: float) -> list[Key]:
        """Return the processes that are gone for longer than *grace*. [s, of the log's clock]"""
        last = self._clock.now - grace
        return [key for key, holder in self._holders.items() if holder.heartbeat < last]

    def put_filter(self, owner: str, name: str, found: Mapping[str, Any] | None, topic: str) -> None:
        """Note which version of a filter is live; None for none."""
        key = (self.site, owner, name)
        self._db.execute("DELETE FROM known_filters WHERE site = ? AND owner = ? AND name = ?", key)
        if found is not None:
            row = (found["version"], found["survey"], topic, found["cap"], found["live"])
            self._db.execute("INSERT INTO known_filters VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*key, *row))

    def set_topics(self, topics: Iterable[TopicRow]) -> None:
        """Note all topics there are."""
        self._db.execute("DELETE FROM known_topics WHERE site = ?", (self.site,))
        rows = ((self.site, *topic) for topic in topics)
        self._db.executemany("INSERT INTO known_topics VALUES (?, ?, ?, ?, ?, ?)", rows)

    def set_members(self, members: Iterable[MemberRow]) -> None:
        """Note which consumer groups read which topics."""
        self._db.execute("DELETE FROM members WHERE site = ?", (self.site,))
        rows = ((self.site, *row) for row in members)
        self._db.executemany("INSERT INTO members VALUES (?, ?, ?, ?, ?)", rows)

    def set_age(self, age: float) -> None:
        """Note how long nothing was heard from the site. [s]"""
        with self._view.lock:
            self._db.execute("UPDATE known_sites SET age = ? WHERE site = ?", (age, self.site))
