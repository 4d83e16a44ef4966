"""Supervision of filters: notices to owners, and suspension of bad filters."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import now_ms
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.decision.backfill_decision import live_from
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.notices import Notice, NoticeState, fault_notices, live_notices, suspensions
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.engine.lane_director import LaneDirector
from nightwire.filters.engine.slow_lane_process import LaneBatch, LaneLag
from nightwire.filters.language import FilterError
from nightwire.filters.model.lane_choice import SUSPEND
from nightwire.filters.model.live_filter import SLOW
from nightwire.filters.stats.metrics import Metrics
from nightwire.schemas import records
from nightwire.schemas.topics import answers

log = logging.getLogger("nightwire.filters")

LATE_S = 60.0
"""From so far behind on an owner is told that his lane is late. [s]"""


class FilterSupervisor:
    """Looks at the decisions, batch by batch; trouble here stops nothing.

    Args:
        bootstrap: Kafka's address.
        catalog: Takes out a suspended filter.
        metrics: What to count.
        state: Says which filters were live before this process.
        lanes: Decides about lanes.
    """

    def __init__(
        self, bootstrap: str, catalog: Catalog, metrics: Metrics, state: EngineState, lanes: LaneDirector
    ) -> None:
        self._control, self._catalog, self._metrics = ControlProducer(bootstrap), catalog, metrics
        self._slow_control, self._lanes = ControlProducer(bootstrap), lanes
        self._state, self._jobs = state, BackfillJobs(state.root)
        # a batch that is done again is looked at again
        before = state.decision(state.newest_commit())
        self._notices = NoticeState(live=set(before.versions) if before else set())
        self._slow = SlowNotices()

    def observe(self, number: int, decision: Decision) -> None:
        """Send the notices of batch *number* to owners, and suspend bad filters."""
        self._begin_backfills(number, decision)
        notices = [
            *self._lanes.observe(number, decision),
            *live_notices(self._notices, number, decision),
            *fault_notices(self._notices, number, decision),
        ]
        self._tell(self._control, notices, list(suspensions(self._notices, number, decision)))

    def observe_slow(self, what: LaneBatch | LaneLag) -> None:
        """Count what a slow lane tells; send its notices to owners, and suspend bad filters."""
        if isinstance(what, LaneLag):
            self._metrics.slow_lag(what.lane, what.filters, what.records, what.seconds)
            self._tell(self._slow_control, list(self._slow.lag_notices(what)), [])
            return
        self._lanes.learn(what.decision)
        if not what.again:
            self._metrics.slow_batch_done(what.decision, what.filters, what.copies)
        notices = [
            *fault_notices(self._slow.state, what.number, what.decision),
            *unjudged_notices(what),
        ]
        bad = [*suspensions(self._slow.state, what.number, what.decision), *too_slow(what)]
        self._tell(self._slow_control, notices, bad)

    def _tell(self, control: ControlProducer, notices: Sequence[Notice], bad: Sequence[Notice]) -> None:
        try:
            for one in bad:
                suspend(self._catalog, self._metrics, one)
            send_notices(control, [*notices, *bad])
        except (KafkaException, DeliveryError, TimeoutError) as error:
            log.warning("owners were not told: %s", error)

    def _begin_backfills(self, number: int, decision: Decision) -> None:
        """Tell the backfills of filters that were not live before where they end."""
        if not self._jobs.any_waits():
            return
        start = self._state.batch_start(number)
        for index, filter_version in enumerate(decision.versions):
            if filter_version not in self._notices.live and self._jobs.waits(filter_version):
                self._jobs.begin(filter_version, live_from(index, start, decision.counts))
        for one in self._state.all_filters(decision.filters):
            if one.lane == SLOW and self._jobs.waits(one.id):
                self._jobs.begin(one.id, start)


@dataclass
class SlowNotices:
    """What owners were told of the slow lanes."""

    state: NoticeState = field(default_factory=NoticeState)
    late: set[str] = field(default_factory=set)

    def lag_notices(self, lag: LaneLag) -> Iterator[Notice]:
        """Yield that a lane is late, once until it is not late any more."""
        if lag.seconds < LATE_S / 6:
            self.late.discard(lag.lane)
        elif lag.seconds > LATE_S and lag.lane not in self.late:
            self.late.add(lag.lane)
            for one in lag.filters:
                yield Notice(
                    *one.id,
                    f"its lane is {lag.seconds:.0f} s behind, {lag.records:,} alerts; what all of your "
                    "slow filters cost together decides that: `nightwire filter top`",
                )


def unjudged_notices(what: LaneBatch) -> Iterator[Notice]:
    """Yield which alerts were not judged, for their lane was too far behind."""
    gone = [one.range for one in what.decision.counts if one.unjudged]
    if not gone:
        return
    where = ", ".join(f"{one.topic}[{one.partition}] {one.first}-{one.end - 1}" for one in gone)
    count = sum(one.size for one in gone)
    for one in what.filters:
        yield Notice(*one.id, f"its lane was too far behind: {count:,} alerts were not judged: {where}")


def too_slow(what: LaneBatch) -> Iterator[Notice]:
    """Yield the filters that are suspended, for that is their owners' wish where they are late."""
    if any(one.unjudged for one in what.decision.counts):
        for one in what.filters:
            if one.behind == SUSPEND:
                yield Notice(*one.id, "suspended: the slow lane could not keep up with it (--behind suspend)")


def suspend(catalog: Catalog, metrics: Metrics, one: Notice) -> None:
    """Take a filter out of the live set, for the reason that the notice gives.

    Raises:
        DeliveryError: Kafka did not take it.
        KafkaException: Kafka does not answer.
    """
    owner, _, name = one.key.partition("/")
    catalog.stop(owner, name, one.version, suspended=one.text.removeprefix("suspended: "))
    metrics.suspended.labels(one.key).inc()
    log.warning("filter %s version %d is %s", one.key, one.version, one.text)


def suspend_forbidden(catalog: Catalog, metrics: Metrics, control: ControlProducer) -> None:
    """Suspend the filters that read what their owners may not; wait while Kafka is away."""
    try:
        bad = [
            Notice(one.key, one.version, f"suspended: {'; '.join(reasons)}")
            for one, reasons in catalog.forbidden().items()
        ]
        for one in bad:
            suspend(catalog, metrics, one)
        send_notices(control, bad)
    except (KafkaException, DeliveryError, TimeoutError, FilterError) as error:
        log.warning("the rights of filters are not known: %s", error)


def send_notices(control: ControlProducer, notices: Sequence[Notice]) -> None:
    """Write *notices* to their owners' answers; on return they are acknowledged.

    Raises:
        DeliveryError: Kafka did not take one.
        KafkaException: Kafka does not answer.
    """
    if not notices:
        return
    owners = sorted({one.key.partition("/")[0] for one in notices})
    with control.writer(*map(answers, owners)) as writer:
        for one in notices:
            log.info("filter %s version %d: %s", one.key, one.version, one.text)
            owner, _, name = one.key.partition("/")
            answer = {
                "request": "", "accepted": one.good, "owner": owner, "name": name,
                "version": one.version, "reasons": [one.text], "time": now_ms(),
            }  # fmt: skip
            writer.write(answers(owner), records.ANSWER.encode(answer), key=name.encode())
