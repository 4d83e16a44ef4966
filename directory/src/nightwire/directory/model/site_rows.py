"""The rows of one site, by its log, its topics and its consumer groups."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nightwire.directory.model.liveness import LATE, LONGEST_STEP, Holder, LogClock, next_holder
from nightwire.directory.model.view import View
from nightwire.schemas import SchemaError, survey

ROW = 200
"""Size of a row beside its texts, about. [byte]"""
TEXTS = ("owner", "survey", "topic", "endpoints", "capabilities")
FIELDS = ("owner", "survey", "topic", "endpoints", "capabilities", "interval")
COLUMNS = ("site", "kind", "name", *FIELDS, "ended", "heartbeat", "heard", "rivals")
PUT = f"INSERT OR REPLACE INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
TABLES = ("entries", "known_filters", "known_topics", "members", "interests")
PUT_INTEREST = "INSERT OR REPLACE INTO interests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
UPDATE_SITE_LOG = """
UPDATE site_logs SET now = ?, newest = ?, refused = ?, reached = julianday('now') WHERE site = ?
"""
ALERTS = "alerts."
"""Prefix of the topics of surveys' alerts."""
PUT_SURVEY = """
INSERT OR IGNORE INTO entries VALUES (?1, 'survey', ?2, '', ?2, ?3, '{}', ?4, 0, 0, 0, NULL, 0)
"""
"""Adds a survey whose alerts have a topic; one that was listed by hand stays as it is."""
PUT_TOPIC = """
INSERT OR REPLACE INTO known_topics (site, topic, partitions, rate, newest, schema_id)
VALUES (?, ?, ?, ?, ?, ?)
"""

Key = tuple[str, str]
"""Kind and name of an entry."""
TopicRow = tuple[str, int, float | None, int | None, int | None]
"""Topic, partitions, rate [1/s], newest record [ms since 1970], newest schema's id."""
MemberRow = tuple[str, str, int, int | None]
"""Consumer group, a topic that it reads, its members, its lag [records]."""


class SiteRows:
    """Writes the rows of *site* into *view*.

    Args:
        view: The database.
        site: Its name.
        bootstrap: Its Kafka.
        registry: URL of its schema registry; empty where it is not known.
        max_bytes: Longest sum of its entries, filters and interests; more are refused. [byte]

    Attributes:
        refused: Records that were malformed or too many.
    """

    def __init__(
        self, view: View, site: str, bootstrap: str = "", registry: str = "", *, max_bytes: float = math.inf
    ) -> None:
        self.site, self._view, self._db, self._max_bytes = site, view, view.db, max_bytes
        self.refused = 0
        with view.lock:
            row = (site, bootstrap, registry)
            self._db.execute("INSERT OR REPLACE INTO site_logs VALUES (?, ?, ?, 0, NULL, 0, 0)", row)
        self.clear()

    def clear(self) -> None:
        """Delete the site's rows: its log is read from its beginning."""
        self._clock, self._holders, self._heard = LogClock(), dict[Key, Holder](), 0
        self._sizes, self._size = dict[Key, int](), 0
        self._topics, self._members, self._surveys = set[TopicRow](), set[MemberRow](), set[str]()
        with self.batch():
            for table in TABLES:
                self._db.execute(f"DELETE FROM {table} WHERE site = ?", (self.site,))  # noqa: S608

    def remove(self) -> None:
        """Delete the site."""
        self.clear()
        with self._view.lock:
            self._db.execute("DELETE FROM site_logs WHERE site = ?", (self.site,))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write the block's rows in one transaction."""
        with self._view.lock:
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute(
                    UPDATE_SITE_LOG, (self._clock.now, self._heard or None, self.refused, self.site)
                )
                self._db.execute("COMMIT")

    def caught_up(self) -> None:
        """Follow the log from here on: it was read to its end.

        A silence that ends there may have been Kafka's own: nobody is gone by it yet.
        """
        self._clock.longest_step = LONGEST_STEP
        at_least = self._clock.now - LATE
        for key, holder in self._holders.items():
            self._holders[key] = replace(holder, heartbeat=max(holder.heartbeat, at_least))
        with self.batch():
            sql = "UPDATE entries SET heartbeat = max(heartbeat, ?) WHERE site = ? AND interval > 0"
            self._db.execute(sql, (at_least, self.site))
            sql = "UPDATE interests SET heartbeat = max(heartbeat, ? - interval) WHERE site = ?"
            self._db.execute(sql, (self._clock.now, self.site))

    def put_entry(self, found: Mapping[str, Any], appended: int) -> None:
        """Write an entry that Kafka appended at *appended*. [ms since 1970]

        Raises:
            ValueError: The site has more than *max_bytes*.
        """
        now, key = self._clock.advance(appended), (found["kind"], found["name"])
        self._reserve(key, sum(len(found[name]) for name in TEXTS))
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
        fields = (found[name] for name in FIELDS)
        self._db.execute(
            PUT, (self.site, *key, *fields, holder.ended, holder.heartbeat, appended, holder.rivals)
        )

    def delete_entry(self, kind: str, name: str) -> None:
        """Delete an entry."""
        self._holders.pop((kind, name), None)
        self._release((kind, name))
        sql = "DELETE FROM entries WHERE site = ? AND kind = ? AND name = ?"
        self._db.execute(sql, (self.site, kind, name))

    def expired_entries(self, grace: float) -> list[Key]:
        """Return the processes that are gone for longer than *grace*. [s, of the log's clock]"""
        last = self._clock.now - grace
        return [key for key, holder in self._holders.items() if holder.heartbeat < last]

    def put_filter(self, owner: str, name: str, found: Mapping[str, Any] | None, topic: str) -> None:
        """Write the live version of a filter; delete it where *found* is None.

        Raises:
            ValueError: The site has more than *max_bytes*.
        """
        key = (self.site, owner, name)
        self._release((f"filter of {owner}", name))
        self._db.execute("DELETE FROM known_filters WHERE site = ? AND owner = ? AND name = ?", key)
        if found is not None:
            self._reserve((f"filter of {owner}", name), len(topic))
            row = (found["version"], found["survey"], topic, found["cap"], found["live"])
            self._db.execute("INSERT INTO known_filters VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*key, *row))

    def put_interest(self, found: Mapping[str, Any], appended: int) -> None:
        """Write an interest that Kafka appended at *appended*. [ms since 1970]

        Raises:
            ValueError: The site has more than *max_bytes*.
        """
        now, key = self._clock.advance(appended), (found["subscriber"], found["name"])
        self._reserve((f"interest of {key[0]}", key[1]), len(found["condition"]) + len(found["topic"]))
        fields = (found[name] for name in ("kind", "topic", "condition", "channel"))
        made, expires = (one and round(1000 * one.timestamp()) for one in (found["made"], found["expires"]))
        row = (self.site, *key, *fields, made, found["interval"], expires, now, appended)
        self._db.execute(PUT_INTEREST, row)

    def delete_interest(self, subscriber: str, name: str) -> None:
        """Delete an interest."""
        self._release((f"interest of {subscriber}", name))
        sql = "DELETE FROM interests WHERE site = ? AND subscriber = ? AND name = ?"
        self._db.execute(sql, (self.site, subscriber, name))

    def expired_interests(self, grace: float) -> list[Key]:
        """Return the interests silent for longer than *grace*. [s, of the log's clock]"""
        sql = "SELECT subscriber, name FROM interests WHERE site = ? AND heartbeat < ?"
        with self._view.lock:
            return self._db.execute(sql, (self.site, self._clock.now - grace)).fetchall()

    def _reserve(self, key: Key, texts: int) -> None:
        """Count the *texts* [byte] of the row of *key*.

        Raises:
            ValueError: The site has more than *max_bytes*.
        """
        if self._max_bytes == math.inf:
            return
        grown = self._size - self._sizes.get(key, 0) + ROW + texts
        if grown > max(self._max_bytes, self._size):
            raise ValueError(f"the site has more than {self._max_bytes} bytes")
        self._sizes[key], self._size = ROW + texts, grown

    def _release(self, key: Key) -> None:
        self._size -= self._sizes.pop(key, 0)

    def set_topics(self, topics: Iterable[TopicRow]) -> None:
        """Write all topics of the site."""
        found = set(topics)
        gone = ((self.site, topic[0]) for topic in self._topics - found)
        self._db.executemany("DELETE FROM known_topics WHERE site = ? AND topic = ?", gone)
        self._db.executemany(PUT_TOPIC, ((self.site, *topic) for topic in found - self._topics))
        self._topics = found
        self._note_surveys({topic[0] for topic in found})

    def _note_surveys(self, topics: set[str]) -> None:
        """Write entries of the surveys whose alerts have one of *topics*."""
        surveys = {one: one.removeprefix(ALERTS) for one in topics if one.startswith(ALERTS)}
        for name in self._surveys - {*surveys.values()}:
            sql = "DELETE FROM entries WHERE site = ? AND kind = 'survey' AND name = ? AND heard IS NULL"
            self._db.execute(sql, (self.site, name))
        rows = ((self.site, name, topic, survey_capabilities(name)) for topic, name in surveys.items())
        self._db.executemany(PUT_SURVEY, rows)
        self._surveys = {*surveys.values()}

    def set_members(self, members: Iterable[MemberRow]) -> None:
        """Write all members of consumer groups."""
        found = set(members)
        gone = ((self.site, *row[:2]) for row in self._members - found)
        self._db.executemany("DELETE FROM members WHERE site = ? AND name = ? AND topic = ?", gone)
        new = ((self.site, *row) for row in found - self._members)
        self._db.executemany("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?)", new)
        self._members = found


def survey_capabilities(name: str) -> str:
    """Return the capabilities of the entry of the survey *name*, as JSON."""
    try:
        return json.dumps({"title": survey(name).description.title})
    except SchemaError:
        return "{}"
