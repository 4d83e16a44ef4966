"""One batch, from the rows of workers to its accounts: decide once, send at least once."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from nightwire.core.accounting import Account
from nightwire.filters.decision.accounts import Unsent, accounts
from nightwire.filters.decision.apply_quotas import BatchContext
from nightwire.filters.decision.decision import Decision, DeliveryItem, decide
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.quota import Quotas
from nightwire.filters.delivery.deliver import Delivery
from nightwire.filters.delivery.transform_writer import open_transform_writer
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import judged_batch
from nightwire.filters.model.offsets import drained, planned_at, positions, version, visits
from nightwire.filters.reading.followers import VisitFollower
from nightwire.filters.stats.metrics import Metrics

log = logging.getLogger("nightwire.filters")


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
    metrics: Metrics
    _quotas: tuple[int, Quotas] | None = None
    _visits: VisitFollower | None = None
    _set: tuple[int, Sequence[LiveFilter]] = (0, ())

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Make new clients: the old ones may be lost."""
        writer = open_transform_writer(self.settings.registry, self.state.schemas)
        self._delivery = Delivery(self.settings.bootstrap, self.metrics.acknowledged, transform_writer=writer)
        self._visits = None

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
            self._keep_unsent(number, decision, self._delivery.send(decision))
        with self._phase("account"):
            self._delivery.account(self._accounts(number, decision))
        self._count(number, decision, time.monotonic() - began)
        return decision

    def _count(self, number: int, decision: Decision, seconds: float) -> None:
        """Count a batch that took so many *seconds*, unless it was counted before."""
        held = len(self._quotas[1].held()) if self._quotas else 0
        again = number <= self.state.counted()
        self.metrics.batch_done(decision, self._filters(decision.filters), held, seconds, again=again)
        if not again:
            self.state.keep_counted(number)

    def _decided(self, number: int, rows: Callable[[], pa.Table]) -> Decision:
        if (known := self.state.decision(number)) is not None:
            log.info("batch %d was decided before: sending it again", number)
            self._quotas = number, self.state.quotas(number)
            return known
        before = self._before(number)
        context = self._context(number, before)
        with self._phase("judge"):
            table = rows()
        with self._phase("decide"):
            decision = decide(judged_batch(table), before, self._filters(context.filters), context)
            self._quotas = number, self.state.keep_decision(number, decision, before)
        return decision

    def _phase(self, name: str) -> AbstractContextManager[None]:
        """Measure a part of a batch."""
        return self.metrics.phase.labels(name).time()

    def _filters(self, version: int) -> Sequence[LiveFilter]:
        if self._set[0] != version:
            self._set = version, self.state.filters(version)
        return self._set[1]

    def _before(self, number: int) -> Quotas:
        """Return the quotas before a batch."""
        if self._quotas is not None and self._quotas[0] == number - 1:
            return self._quotas[1]
        return self.state.quotas(number - 1)

    def _context(self, number: int, before: Quotas) -> BatchContext:
        """Return the context from the batch's offset, which Spark has logged before."""
        offset = self.state.planned(number)
        position = max(visits(offset), before.position)
        self._visits = self._visits or VisitFollower(self.settings.bootstrap)
        return BatchContext(
            batch=number,
            filters=version(offset),
            at=planned_at(offset),
            position=position,
            reached=positions(offset),
            closed=self._visits.closed(before.position, position),
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


def accounts_touched(accounts: list[Account], released: Sequence[DeliveryItem]) -> Iterator[Account]:
    """Yield those of *accounts* in whose ranges *released* alerts lie."""
    partitions = {(item.alert.topic, item.alert.partition) for item in released}
    return (one for one in accounts if (one.source, one.partition) in partitions)
