"""One batch, from the rows of workers to its accounts: decide once, send at least once."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import pyarrow as pa
from prometheus_client import Summary

from nightwire.core.accounting import Account
from nightwire.filters.decision.accounts import Unsent, accounts
from nightwire.filters.decision.apply_quotas import BatchContext
from nightwire.filters.decision.decision import Decision, DeliveryItem, decide
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.quota import Quotas, VisitQuota, admitted_of, with_admitted
from nightwire.filters.decision.slow_lanes import SlowLanes
from nightwire.filters.delivery.deliver import AcknowledgedCopy, Delivery
from nightwire.filters.delivery.transform_writer import open_transform_writer
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.model.live_filter import SLOW, LiveFilter
from nightwire.filters.model.messages import JudgedBatch, judged_batch
from nightwire.filters.model.offsets import Visit, drained, planned_at, positions, version, visits
from nightwire.filters.reading.followers import VisitFollower

log = logging.getLogger("nightwire.filters")


class BatchObserver(Protocol):
    """What is told of batches as they are run."""

    phase: Summary

    def acknowledged(self, copy: AcknowledgedCopy) -> None:
        """Note a copy that Kafka acknowledged."""

    def batch_begins(self) -> None:
        """Note that a batch begins, perhaps once more."""

    def batch_done(
        self, decision: Decision, live: Sequence[LiveFilter], held: int, seconds: float, *, again: bool
    ) -> None:
        """Note that a batch is sent and accounted for."""


@dataclass
class BatchClients:
    """Clients of Kafka with which batches are done; several lanes may share them.

    Args:
        settings: The engine's.
        state: Says where schemas are kept.
        on_sent: Called with each copy that Kafka acknowledged.
        on_fetched: Called with how long a decision's alerts were waited for. [s]
    """

    settings: EngineSettings
    state: EngineState
    on_sent: Callable[[AcknowledgedCopy], None]
    on_fetched: Callable[[float], None] = lambda _seconds: None

    @cached_property
    def delivery(self) -> Delivery:
        """Sends decisions."""
        writer = open_transform_writer(self.settings.registry, self.state.schemas)
        return Delivery(self.settings.bootstrap, self.on_sent, writer, self.on_fetched)

    @cached_property
    def visits(self) -> VisitFollower:
        """Follows the topic `visits`."""
        return VisitFollower(self.settings.bootstrap)

    def restart(self) -> None:
        """Forget all clients: they may be lost."""
        for name in ("delivery", "visits"):
            vars(self).pop(name, None)


@dataclass
class BatchRunner:
    """Decides batches, sends them, accounts for them.

    Args:
        settings: The engine's.
        state: What is kept on disk.
        metrics: What to count.
    """

    settings: EngineSettings
    state: EngineState
    metrics: BatchObserver
    _quotas: tuple[int, Quotas] | None = None
    _set: tuple[int, Sequence[LiveFilter]] = (0, ())

    def __post_init__(self) -> None:
        fetched = self.metrics.phase.labels("fetch").observe
        self.clients = BatchClients(self.settings, self.state, self.metrics.acknowledged, fetched)

    def restart(self) -> None:
        """Make new clients: the old ones may be lost."""
        self.clients.restart()

    def run(self, number: int, rows: Callable[[], pa.Table]) -> Decision:
        """Do batch *number*; *rows* gives the workers' rows, unless the batch was decided before.

        Raises:
            DeliveryError: Kafka did not take something; nothing was accounted.
            KafkaException: Kafka is away for too long.
        """
        began = time.monotonic()
        self.metrics.batch_begins()
        decision = self._decided(number, rows)
        with self._phase("send"):
            self._keep_unsent(number, decision, self.clients.delivery.send(decision))
        with self._phase("account"):
            self.clients.delivery.account(map(self._account, self._accounts(number, decision)))
        self._count(number, decision, time.monotonic() - began)
        return decision

    def _count(self, number: int, decision: Decision, seconds: float) -> None:
        """Count a batch that took so many *seconds*, unless it was counted before."""
        held = len(self._quotas[1].held()) if self._quotas else 0
        again = number <= self.state.counted()
        self.metrics.batch_done(decision, self.filters(decision.filters), held, seconds, again=again)
        if not again:
            self.state.keep_counted(number)

    def _decided(self, number: int, rows: Callable[[], pa.Table]) -> Decision:
        if (known := self.state.decision(number)) is not None:
            log.info("batch %d was decided before: sending it again", number)
            self._quotas = number, self.state.quotas(number)
            return known
        arrived = self._arrived(number)
        before = with_admitted(self.quotas(number - 1), arrived)
        context = self._context(number, before)
        with self._phase("judge"):
            table = rows()
        with self._phase("decide"):
            judged, filters = self._judged(table), self.filters(context.filters)
            decision = with_arrived(decide(judged, before, filters, context), before, arrived)
            self._quotas = number, self.state.keep_decision(number, decision, before)
        return decision

    def _judged(self, table: pa.Table) -> JudgedBatch:
        return judged_batch(table)

    def _account(self, account: Account) -> Account:
        return account

    def _arrived(self, number: int) -> Mapping[Visit, VisitQuota]:
        """Return what filters that leave slow lanes with a batch have admitted there."""
        now = version(self.state.planned(number))
        if (last := version(self.state.planned(number - 1)) if number else 0) == now:
            return {}
        lanes, found = SlowLanes(self.state.root), dict[Visit, VisitQuota]()
        slow = {one.key: one.owner for one in self.state.all_filters(last) if one.lane == SLOW}
        owners = {slow[one.key] for one in self.state.filters(now) if one.key in slow}
        keys = {one.key for one in self.state.filters(now)} & slow.keys()
        for name in filter(None, map(lanes.current, sorted(owners))):
            lane = lanes.state(name)
            part = admitted_of(lane.quotas(lane.newest_decision()), keys)
            found = dict(with_admitted(Quotas(found), part).visits)
        return found

    def _phase(self, name: str) -> AbstractContextManager[None]:
        """Measure a part of a batch."""
        return self.metrics.phase.labels(name).time()

    def filters(self, version: int) -> Sequence[LiveFilter]:
        """Return the filters of a version of the filter set."""
        if self._set[0] != version:
            self._set = version, self.state.filters(version)
        return self._set[1]

    def quotas(self, number: int) -> Quotas:
        """Return the quotas after a batch."""
        if self._quotas is not None and self._quotas[0] == number:
            return self._quotas[1]
        return self.state.quotas(number)

    def _context(self, number: int, before: Quotas) -> BatchContext:
        """Return the context from the batch's offset, which Spark has logged before."""
        offset = self.state.planned(number)
        position = max(visits(offset), before.position)
        return BatchContext(
            batch=number,
            filters=version(offset),
            at=planned_at(offset),
            position=position,
            reached=positions(offset),
            closed=self.clients.visits.closed(before.position, position),
            deadline=round(1000 * self.settings.deadline),
            drained=drained(offset),
        )

    def _keep_unsent(self, number: int, decision: Decision, unsent: Unsent) -> None:
        for batch, items in {number: decision.items, **decision.released}.items():
            self.state.keep_unsent(batch, unsent.of({item.alert.position for item in items}))

    def _accounts(self, number: int, decision: Decision) -> Iterator[Account]:
        """Yield the accounts of a batch, and anew those of ranges whose candidates it released."""
        yield from accounts(decision, unsent=self.state.unsent(number))
        for batch, released in decision.released.items():
            if (earlier := self.state.decision(batch)) is None:
                log.error(
                    "decision %d is missing: its accounts go on calling %d alerts capped",
                    batch,
                    len(released),
                )
                continue
            later = [*decision.before.get(batch, ()), *released]
            yield from accounts_touched(accounts(earlier, later, self.state.unsent(batch)), released)


def with_arrived(decision: Decision, before: Quotas, arrived: Collection[Visit]) -> Decision:
    """Return a decision that says of *arrived* visits, too, what their quotas were *before*."""
    visits = {visit: before.visits[visit] for visit in arrived} | dict(decision.changes.visits)
    return replace(decision, changes=replace(decision.changes, visits=visits)) if arrived else decision


def accounts_touched(accounts: list[Account], released: Sequence[DeliveryItem]) -> Iterator[Account]:
    """Yield those of *accounts* in whose ranges *released* alerts lie."""
    partitions = {(item.alert.topic, item.alert.partition) for item in released}
    return (one for one in accounts if (one.source, one.partition) in partitions)
