"""An owner's slow lane: which alerts its next batch judges, and that batch.

It follows the quick lane, never before it, and changes filters where that did.  What it decides and
sends is on disk as in the quick lane: after a crash it sends the same alerts once more, never
others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from nightwire.core.accounting import Account
from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import now_ms
from nightwire.filters.decision.accounts import slow_account
from nightwire.filters.decision.engine_state import LocalCheckpoint
from nightwire.filters.decision.quota import Quotas, VisitQuota, with_admitted
from nightwire.filters.decision.slow_lanes import LaneChange, SlowLanes, changes_after, owner_of
from nightwire.filters.engine.batch import BatchClients, BatchObserver, BatchRunner
from nightwire.filters.engine.planner import BatchSizeController
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.evaluation.worker import make_task, run
from nightwire.filters.model.chains import derived_sources, is_drained
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import (
    COLUMNS,
    JudgedBatch,
    RangeCounts,
    judged_batch,
    rows_to_arrow,
    without_undecodable,
)
from nightwire.filters.model.offsets import (
    SKIPPED,
    Offset,
    OffsetRange,
    Positions,
    Visit,
    advance,
    positions,
    ranges,
    skipped,
    to_offset,
    version,
    visits,
)

TURN_S = 1.0
"""What a batch of one owner may take, before others have their turn. [s]"""

FIRST, LEAST = 100, 20
"""Records of a lane's first batch, of which nothing is known; and that any may have."""


class SlowBatchRunner(BatchRunner):
    """Decides, sends and accounts for the batches of a slow lane."""

    def _judged(self, table: pa.Table) -> JudgedBatch:
        return without_undecodable(judged_batch(table))

    def _account(self, account: Account) -> Account:
        return slow_account(account, self.state.checkpoint.name)

    def _arrived(self, number: int) -> Mapping[Visit, VisitQuota]:
        """Return what filters that leave the quick lane have admitted there."""
        now = version(self.state.planned(number))
        last = version(self.state.planned(number - 1)) if number else 0
        found = Quotas()
        for change in SlowLanes(self.state.root).schedule(self.state.checkpoint.name):
            if last < change.filters <= now:
                found = with_admitted(found, change.admitted)
        return found.visits


@dataclass(frozen=True)
class Ahead:
    """What lies before a lane.

    Attributes:
        filters: The filters that judge it.
        version: The version of their set.
        here: The lane's position, in all partitions.
        target: How far it may go: to where its filters change, or to where the quick lane is.
        changes: Whether its filters change there.
        ended: Whether the lane ends here.
    """

    filters: Sequence[LiveFilter]
    version: int
    here: Positions
    target: Positions
    changes: bool
    ended: bool

    def read(self) -> dict[TopicPartition, int]:
        """Return the targets in the topics that the filters judge; others are passed over."""
        topics = {partition[0] for partition in self.target}
        wanted = {topic for topic in topics if any(one.reads_topic(topic) for one in self.filters)}
        return {partition: end for partition, end in self.target.items() if partition[0] in wanted}

    def reached(self, limit: int | None) -> dict[TopicPartition, int]:
        """Return where a batch of *limit* records ends; topics nobody reads are passed over."""
        if self.ended:
            return dict(self.here)
        read = self.read()
        return {**self.target, **advance({one: self.here[one] for one in read}, read, limit)}

    def has_work(self, reached: Positions) -> bool:
        """Return whether a batch that ends at *reached* reads anything, or meets other filters."""
        return reached != self.here and (
            self.changes or any(reached[one] > self.here[one] for one in self.read())
        )


@dataclass
class SlowLane:
    """One lane, batch by batch.

    Args:
        name: Its name, ``<owner>.<time>``.
        settings: The engine's.
        clients: Shared by the lanes of this process.
        observer: What to tell of batches.

    Attributes:
        used: Time that it had so far. [s]
    """

    name: str
    settings: EngineSettings
    clients: BatchClients
    observer: BatchObserver
    used: float = 0.0
    _size: BatchSizeController = field(
        default_factory=lambda: BatchSizeController(TURN_S, least=LEAST, first=FIRST)
    )

    def __post_init__(self) -> None:
        self._lanes = SlowLanes(self.settings.state)
        self.state = self._lanes.state(self.name)
        self._checkpoint = LocalCheckpoint(self.state)
        self._batches = SlowBatchRunner(self.settings, self.state, self.observer)
        self._batches.clients = self.clients
        self._number = self.state.newest_commit() + 1
        self._start: Offset = self.state.committed() or to_offset(self._changes()[0].at, 0)
        self._due = self.state.quotas(self._number - 1).due(self._deadline)

    @property
    def owner(self) -> str:
        """Whose it is."""
        return owner_of(self.name)

    @property
    def number(self) -> int:
        """Its next batch."""
        return self._number

    @property
    def _deadline(self) -> int:
        return round(1000 * self.settings.deadline)

    def _changes(self) -> list[LaneChange]:
        return self._lanes.schedule(self.name)

    def ahead(self, bound: Offset) -> Ahead:
        """Return what lies before it; *bound* is the quick lane's position."""
        at, changes = positions(self._start), self._changes()
        later = list(changes_after(changes, at))
        now = changes[len(changes) - len(later) - 1]
        target = dict(later[0].at) if later else {**at, **positions(bound)}
        known = at if target.keys() <= at.keys() else {**self.state.beginnings(), **at}
        here = {partition: known.get(partition, 0) for partition in target}
        filters = self._batches.filters(now.filters)
        ended = not (now.names or later)
        return Ahead(filters, now.filters, here, target, changes=bool(later), ended=ended)

    def plan(self, bound: Offset, *, too_old: bool) -> Offset | None:
        """Return the end of its next batch; None where there is nothing to do.

        Args:
            bound: The quick lane's position.
            too_old: Whether the lane leaves out what it is behind.
        """
        if (planned := self._checkpoint.planned(self._number)) is not None:
            return planned
        ahead, now = self.ahead(bound), now_ms()
        read = {} if ahead.ended else ahead.read()
        reached = ahead.reached(None if too_old else self._size.limit(self.settings.batch))
        if not ahead.has_work(reached) and not self._visit_is_due(bound, now):
            return None
        self._size.planned(sum(reached[partition] - ahead.here[partition] for partition in read))
        return to_offset(
            reached,
            ahead.version,
            visits=max(visits(self._start), visits(bound)),
            at=now,
            drained=int(is_drained(reached, read)),
            **({SKIPPED: 1} if too_old else {}),
        )

    def _visit_is_due(self, bound: Offset, now: int) -> bool:
        return self._due is not None and (now >= self._due or visits(bound) > visits(self._start))

    def run(self, end: Offset) -> None:
        """Judge, decide, send and account for the batch that ends at *end*.

        Raises:
            KafkaException: Kafka is away for too long.
            DeliveryError: Kafka did not take something.
            RegistryAwayError: The registry is away.
        """
        self._checkpoint.plan(self._number, end)
        self._batches.run(self._number, lambda: self._rows(end))
        self._due = self._batches.quotas(self._number).due(self._deadline)
        self._checkpoint.commit(self._number)
        self._number, self._start = self._number + 1, end

    def _rows(self, end: Offset) -> pa.Table:
        """Return the worker's rows of the batch that ends at *end*."""
        filters = self._batches.filters(version(end))
        work = [
            one
            for one in ranges(positions(self._start), positions(end), self.state.beginnings())
            if any(live.reads_topic(one.topic) for live in filters)
        ]
        if skipped(end):
            return pa.Table.from_batches([left_out(work)], COLUMNS)
        options = {**self.settings.options(), "owner": self.owner}
        rows = run(make_task(options, tuple(work), version(end), derived_sources(filters)))
        return pa.Table.from_batches(rows, COLUMNS)

    def records_behind(self, bound: Offset) -> int:
        """Return how many records it has to judge yet until it is where the quick lane is."""
        ahead = self.ahead(bound)
        ends = positions(bound)
        return sum(max(0, ends.get(one, 0) - ahead.here.get(one, 0)) for one in ahead.read())

    def has_ended(self, bound: Offset) -> bool:
        """Return whether nothing is left to do, now and ever."""
        return self._due is None and self.ahead(bound).ended


def left_out(work: Sequence[OffsetRange]) -> pa.RecordBatch:
    """Return the rows of ranges that are not judged."""
    return rows_to_arrow([RangeCounts(one, 0, unjudged=one.size).row() for one in work])
