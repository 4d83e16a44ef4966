"""Planning: which Kafka offsets the next batch reads, and by which version of the filter set.

Runs in a Python process of its own that Spark starts for each query.  It must outlive an outage of
Kafka, for the query dies with it: while Kafka does not answer there is simply nothing new.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import now_ms
from nightwire.filters.decision.apply_quotas import DEADLINE
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.engine.lane_assignment import LaneAssignment
from nightwire.filters.model import filter_set
from nightwire.filters.model.chains import (
    active_derived,
    derived_sources,
    is_derived,
    is_drained,
    readable_ends,
)
from nightwire.filters.model.live_filter import FilterVersion, LiveFilter
from nightwire.filters.model.offsets import (
    Offset,
    OffsetRange,
    advance,
    positions,
    ranges,
    to_offset,
    version,
    visits,
)
from nightwire.filters.reading.fetch import TIMEOUT, partition_bounds
from nightwire.filters.reading.followers import FilterFollower, VisitFollower
from nightwire.schemas import surveys
from nightwire.schemas.topics import alerts

TARGET = 2.5
"""What a batch may take: a new filter waits for the end of the running one. [s]"""

LEAST = 500
"""Records that a batch may have in any case."""

FIRST = 2500
"""Records of the first batch, of which nothing is known."""

STEP = 2.0
"""From one batch to the next the limit grows or shrinks at most so many times."""


@dataclass
class BatchSizeController:
    """Learns from how long batches take, from when one is planned to when the next is asked for.

    Args:
        target: What a batch may take. [s]
        clock: Tells the time. [s]
        least: Records that a batch may have in any case.
        first: Records of the first batch.
    """

    target: float = TARGET
    clock: Callable[[], float] = time.monotonic
    least: int = LEAST
    first: int = FIRST
    _planned: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        self._limit = self.first

    def limit(self, most: int | None) -> int | None:
        """Return the most records of the next batch, at most *most*; None: no limit."""
        if most is None:
            return None
        if self._planned is not None:
            self._learn(*self._planned)
            self._planned = None
        return min(most, self._limit)

    def planned(self, records: int) -> None:
        """Note that a batch of so many *records* begins now."""
        self._planned = (records, self.clock())

    def _learn(self, records: int, began: float) -> None:
        """Learn from the time of a batch; a small one says little of large ones."""
        change = self.target / max(self.clock() - began, 1e-3)
        if change < 1 or 2 * records >= self._limit:
            self._limit = max(self.least, round(self._limit * min(STEP, max(1 / STEP, change))))


log = logging.getLogger("nightwire.filters.planner")

SeenBy = tuple[int, int, tuple[tuple[FilterVersion, str], ...]]
"""The end of the topic `filters`, the version of the last batch, and the lanes that are wanted."""


@dataclass(frozen=True)
class FilterSetAt:
    """The filter set that was made of what was *seen*.

    Attributes:
        seen: Of that it was made.
        version: Its version.
        filters: The filters, with their lanes.
        pending: Some wait for leaving their lanes.
    """

    seen: SeenBy
    version: int
    filters: Sequence[LiveFilter]
    pending: bool


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
        tasks: Tasks of a batch.
    """

    bootstrap: str
    state: EngineState
    deadline: int = DEADLINE
    tasks: int = 1
    _known_partitions: list[TopicPartition] = field(default_factory=list)
    _partitions_at: float = -METADATA_AGE
    _topics: set[str] = field(default_factory=set)
    _sources: dict[int, frozenset[str]] = field(default_factory=dict)
    _beginnings: dict[TopicPartition, int] | None = None
    _due: tuple[int, int | None] = (-1, None)
    _set: "FilterSetAt | None" = None
    _stored_at: float = 0.0
    _batch_size: BatchSizeController = field(default_factory=BatchSizeController)

    def __post_init__(self) -> None:
        self._lanes = LaneAssignment(self.state, self.tasks)

    def latest(self, start: Offset, limit: int | None) -> Offset:
        """Return the next batch's end, at most *limit* records after *start*; or *start*."""
        try:
            return self._latest(start, limit)
        except (KafkaException, TimeoutError) as error:
            log.warning("Kafka does not answer: %s", error)
            time.sleep(IDLE)
            return start

    def beginnings(self) -> Mapping[TopicPartition, int]:
        """Return where partitions began that Spark's offset does not know yet."""
        if self._beginnings is None:
            self._beginnings = self.state.beginnings()
        return self._beginnings

    def _latest(self, start: Offset, limit: int | None) -> Offset:
        filters = self._filters(version(start), start)
        ends = self._ends(start, filters)
        known = dict(self.beginnings()) | positions(start)
        read = readable_ends(
            ends, active_derived(start, self._derived(version(start)), self._derived(filters))
        )
        reached = advance(known, read, self._batch_size.limit(limit))
        now = now_ms()
        if reached == known and not (self._visit_is_due(start, now) or self._backfill_waits(start, filters)):
            time.sleep(IDLE)
            return start
        self._batch_size.planned(
            sum(reached.values()) - sum(known.get(partition, 0) for partition in reached)
        )
        return to_offset(
            {**reached, **{partition: end for partition, end in ends.items() if partition not in read}},
            filters,
            visits=max(visits(start), self._closed_visits.end()),
            at=now,
            drained=int(is_drained(reached, read)),
        )

    def work(self, start: Offset, end: Offset) -> tuple[list[OffsetRange], frozenset[str]]:
        """Return the ranges and the derived topics of a batch, the same each time."""
        read = active_derived(start, self._derived(version(start)), self._derived(version(end)))
        return ranges(positions(start), positions(end), self.beginnings()), read

    def _derived(self, filters: int) -> frozenset[str]:
        """Return the derived topics that a version of the filter set reads."""
        if filters not in self._sources:
            self._sources[filters] = derived_sources(self.state.all_filters(filters))
        return self._sources[filters]

    def _ends(self, start: Offset, filters: int) -> dict[TopicPartition, int]:
        """Return where all partitions end that filters read, or once read."""
        partitions = self._partitions(
            self._derived(filters) | {topic for topic in start if is_derived(topic)}
        )
        self._note_beginnings(partitions)
        return partition_bounds(self._client, partitions)

    def _visit_is_due(self, start: Offset, now: int) -> bool:
        """Return whether a visit that holds alerts is over: that makes a batch of its own."""
        newest = self.state.newest_decision()
        if newest != self._due[0]:
            self._due = (newest, self.state.quotas(newest).due(self.deadline))
        due = self._due[1]
        return due is not None and (now >= due or self._closed_visits.closed_since(visits(start)))

    def _backfill_waits(self, start: Offset, filters: int) -> bool:
        """Return whether a new filter's backfill waits for its end: that makes a batch, too."""
        return filters > version(start) and BackfillJobs(self.state.root).any_waits()

    @cached_property
    def _closed_visits(self) -> VisitFollower:
        return VisitFollower(self.bootstrap)

    def _partitions(self, derived: Collection[str]) -> list[TopicPartition]:
        """Return the partitions of all alert topics, and of the topics *derived*."""
        if time.monotonic() - self._partitions_at >= METADATA_AGE or not self._topics.issuperset(derived):
            found = self._client.list_topics(timeout=TIMEOUT).topics
            self._topics = {*(alerts(survey) for survey in surveys()), *derived}
            self._known_partitions = sorted(
                (topic, part) for topic in self._topics & found.keys() for part in found[topic].partitions
            )
            self._partitions_at = time.monotonic()
        return self._known_partitions

    def _note_beginnings(self, partitions: list[TopicPartition]) -> None:
        """Find and keep where new partitions begin, once: a re-run must start at the same offset.

        Alerts are read from the earliest; derived topics from their end.
        """
        fresh = [partition for partition in partitions if partition not in self.beginnings()]
        if fresh:
            known = {topic for topic, _ in self.beginnings()}
            late = [
                partition for partition in fresh if is_derived(partition[0]) and partition[0] not in known
            ]
            early = [partition for partition in fresh if partition not in late]
            found = partition_bounds(self._client, early, earliest=True) | partition_bounds(
                self._client, late
            )
            self._beginnings = {**self.beginnings(), **found}
            self.state.keep_beginnings(self._beginnings)
            log.info("reading %s", ", ".join(sorted({topic for topic, _ in fresh})))

    def _filters(self, before: int, start: Offset) -> int:
        """Store the filter set as it is now and return its version: that of *before*, if it is the
        same.
        """
        seen = (self._followed_filters.refresh(), before, tuple(self._lanes.wanted().items()))
        known = self._set
        again = known is not None and known.pending and time.monotonic() - self._stored_at >= METADATA_AGE
        if known is None or known.seen != seen or again:
            known, self._stored_at = self._stored(seen, start), time.monotonic()
            self._set = known
        return known.version

    @cached_property
    def _followed_filters(self) -> FilterFollower:
        return FilterFollower(self.bootstrap)

    def _stored(self, seen: "SeenBy", start: Offset) -> "FilterSetAt":
        """Return the filter set as it is now, stored."""
        end, before, _ = seen
        old, live = self.state.all_filters(before), self._followed_filters.filters.live()
        filters = self._lanes.assigned(live, old, start)
        number, pending = before, self._lanes.pending(filters)
        if filters != old:
            last = self._set
            same = last is not None and last.filters == filters and last.version > before
            number = last.version if last and same else max(end, before + 1, last.version + 1 if last else 0)
            self.state.keep_filters(number, filter_set.dump(filters), {before, *self._lanes.lanes.needed()})
        return FilterSetAt(seen, number, filters, pending)

    @cached_property
    def _client(self) -> AdminClient:
        return kafka.admin(self.bootstrap)
