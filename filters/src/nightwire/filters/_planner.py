"""Planning: which Kafka offsets the next batch reads, and by which version of the filter set.

Runs in a Python process of its own that Spark starts for each query.  It must outlive an outage of
Kafka, for the query dies with it: while Kafka does not answer there is simply nothing new.
"""

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core import kafka
from nightwire.core.clock import now_ms
from nightwire.core.kafka import marks
from nightwire.filters import _filterset
from nightwire.filters._backfill_jobs import Jobs
from nightwire.filters._chains import asked, fed_sources, is_drained, is_fed, readable
from nightwire.filters._choice import DEADLINE
from nightwire.filters._fetch import TIMEOUT, bounds, fetch, reader
from nightwire.filters._filterset import FilterSet
from nightwire.filters._offsets import (
    Offset,
    Range,
    Spot,
    advance,
    positions,
    ranges,
    to_offset,
    version,
    visits,
)
from nightwire.filters._pace import Pace
from nightwire.filters._state import State
from nightwire.filters._visits import VisitWatch
from nightwire.schemas import surveys
from nightwire.schemas.topics import FILTERS, alerts

log = logging.getLogger("nightwire.filters.planner")

IDLE = 0.2
"""Pause when there is nothing to read; Spark would ask again at once. [s]"""

METADATA_AGE = 1.0
"""A new survey's topic, or partition, is noticed after at most this. [s]"""


@dataclass
class Planner:
    """Knows where the topics end, which filters are live, and which visits are closed.

    Args:
        bootstrap: Kafka's address.
        state: What is kept on disk.
        deadline: Longest that a visit is held for its best alerts. [ms]
    """

    bootstrap: str
    state: State
    deadline: int = DEADLINE
    _admin: AdminClient | None = None
    _spots: list[Spot] = field(default_factory=list)
    _spots_at: float = -METADATA_AGE
    _judged: set[str] = field(default_factory=set)
    _sources: dict[int, frozenset[str]] = field(default_factory=dict)
    _beginnings: dict[Spot, int] | None = None
    _watch: "FilterWatch | None" = None
    _visits: VisitWatch | None = None
    _due: tuple[int, int | None] = (-1, None)
    _kept: int = 0
    _pace: Pace = field(default_factory=Pace)

    def latest(self, start: Offset, limit: int | None) -> Offset:
        """Return the next batch's end, at most *limit* records after *start*; *start* when nothing is new."""
        try:
            return self._latest(start, limit)
        except (KafkaException, TimeoutError) as error:
            log.warning("Kafka does not answer: %s", error)
            time.sleep(IDLE)
            return start

    def beginnings(self) -> Mapping[Spot, int]:
        """Return where partitions began that Spark's offset does not know yet."""
        if self._beginnings is None:
            self._beginnings = self.state.beginnings()
        return self._beginnings

    def _latest(self, start: Offset, limit: int | None) -> Offset:
        filters = max(version(start), self._filters(version(start)))
        ends = self._ends(start, filters)
        known = dict(self.beginnings()) | positions(start)
        read = readable(ends, asked(start, self._fed(version(start)), self._fed(filters)))
        reached = advance(known, read, self._pace.limit(limit))
        now = now_ms()
        if reached == known and not (self._visit_ends(start, now) or self._past_waits(start, filters)):
            time.sleep(IDLE)
            return start
        self._pace.planned(sum(reached.values()) - sum(known.get(spot, 0) for spot in reached))
        return to_offset(
            {**reached, **{spot: end for spot, end in ends.items() if spot not in read}},
            filters,
            visits=max(visits(start), self._closings().end()),
            at=now,
            drained=int(is_drained(reached, read)),
        )

    def work(self, start: Offset, end: Offset) -> tuple[list[Range], frozenset[str]]:
        """Return the ranges of a batch, and which topics of what passed filters are read in it.

        Both are the same each time.
        """
        read = asked(start, self._fed(version(start)), self._fed(version(end)))
        return ranges(positions(start), positions(end), self.beginnings()), read

    def _fed(self, filters: int) -> frozenset[str]:
        """Return the topics of what passed filters that are read by a version of the filter set."""
        if filters not in self._sources:
            self._sources[filters] = fed_sources(self.state.filters(filters))
        return self._sources[filters]

    def _ends(self, start: Offset, filters: int) -> dict[Spot, int]:
        """Return where all partitions end that filters read, or once read."""
        spots = self._partitions(self._fed(filters) | {topic for topic in start if is_fed(topic)})
        self._note_beginnings(spots)
        return bounds(self._client(), spots)

    def _visit_ends(self, start: Offset, now: int) -> bool:
        """Return whether a visit whose best alerts are held is over: that makes a batch of its own."""
        newest = self.state.newest_decision()
        if newest != self._due[0]:
            self._due = (newest, self.state.caps(newest).due(self.deadline))
        due = self._due[1]
        return due is not None and (now >= due or self._closings().closed_since(visits(start)))

    def _past_waits(self, start: Offset, filters: int) -> bool:
        """Return whether a new filter's backfill waits to be told where it ends: that makes a batch, too."""
        return filters > version(start) and Jobs(self.state.root).any_waits()

    def _closings(self) -> VisitWatch:
        if self._visits is None:
            self._visits = VisitWatch(self.bootstrap)
        return self._visits

    def _partitions(self, fed: Collection[str]) -> list[Spot]:
        """Return the partitions of all alert topics, and of the topics *fed*."""
        if time.monotonic() - self._spots_at >= METADATA_AGE or not self._judged.issuperset(fed):
            found = self._client().list_topics(timeout=TIMEOUT).topics
            self._judged = {*(alerts(survey) for survey in surveys()), *fed}
            self._spots = sorted(
                (topic, part) for topic in self._judged & found.keys() for part in found[topic].partitions
            )
            self._spots_at = time.monotonic()
        return self._spots

    def _note_beginnings(self, spots: list[Spot]) -> None:
        """Resolve where new partitions begin once and keep it: a re-run must start at the same offset.

        Alerts are read from the earliest; of what passed filters, what comes after somebody asked for it.
        """
        fresh = [spot for spot in spots if spot not in self.beginnings()]
        if fresh:
            known = {topic for topic, _ in self.beginnings()}
            late = [spot for spot in fresh if is_fed(spot[0]) and spot[0] not in known]
            early = [spot for spot in fresh if spot not in late]
            found = bounds(self._client(), early, earliest=True) | bounds(self._client(), late)
            self._beginnings = {**self.beginnings(), **found}
            self.state.keep_beginnings(self._beginnings)
            log.info("reading %s", ", ".join(sorted({topic for topic, _ in fresh})))

    def _filters(self, before: int) -> int:
        """Return the filter set's present version, after having stored it; version *before* is needed yet."""
        if self._watch is None:
            self._watch = FilterWatch(self.bootstrap)
        reached = self._watch.refresh()
        if reached != self._kept:
            self.state.keep_filters(reached, _filterset.dump(self._watch.filters.live()), before)
            self._kept = reached
        return reached

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = kafka.admin(self.bootstrap)
        return self._admin


class FilterWatch:
    """Follows the compacted topic `filters`.

    Args:
        bootstrap: Kafka's address.
    """

    def __init__(self, bootstrap: str) -> None:
        self._consumer: Consumer = reader(bootstrap)
        self._next = 0
        self.filters = FilterSet()

    def refresh(self) -> int:
        """Take in what is new; return the topic's end offset, which is the set's version.

        Raises:
            KafkaException: Kafka does not answer.
        """
        low, end = marks(self._consumer, FILTERS, 0)
        if end > max(low, self._next):
            wanted = Range(FILTERS, 0, max(low, self._next), end)
            fresh = [message for some in fetch(self._consumer, wanted, patience=TIMEOUT) for message in some]
            for message in fresh:  # all of them or, when Kafka fell silent, none
                self.filters.take(message.key(), message.value())
            self._next = end
        return max(self._next, end)
