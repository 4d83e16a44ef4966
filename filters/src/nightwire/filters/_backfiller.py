"""The process that does backfills: beside the engine, nicely, a small batch of each in turn.

What it judges, decides and sends is on disk as in the engine: a process that begins again where another ended
sends the same alerts once more, never others.
"""

import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import KafkaException

from nightwire.core.clock import now_ms
from nightwire.core.kafka import DeliveryError
from nightwire.core.process import Stop, setup_logging, stopping
from nightwire.filters import _filterset, _worker
from nightwire.filters._backfill import (
    BATCH,
    STAGE,
    STRIKES,
    Job,
    Reached,
    after,
    decide_past,
    past_accounts,
    told,
)
from nightwire.filters._backfill_jobs import Jobs
from nightwire.filters._caps import Caps
from nightwire.filters._chains import fed_sources
from nightwire.filters._delivery import Delivery
from nightwire.filters._judge import LiveFilter
from nightwire.filters._notices import Notice
from nightwire.filters._offsets import Spot, advance, ranges
from nightwire.filters._opening import opening
from nightwire.filters._outbox import Outbox
from nightwire.filters._outlet import outlet
from nightwire.filters._planner import FilterWatch
from nightwire.filters._rows import COLUMNS, Judged, judged
from nightwire.filters._settings import Settings
from nightwire.filters._state import State
from nightwire.filters._watch import tell
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.filters.backfill")

AT_ONCE = 3
"""So many backfills take turns, those with the least to do; others wait."""

SHARE = 0.25
"""Part of the time in which a backfill works; the rest is the live stream's."""

NICE = 10
"""How much it gives way to whoever else wants the processor."""

PAUSE = 1.0
"""Pause before what failed is tried again. [s]"""

QUIET = 5.0
"""Shortest time between two words of progress. [s]"""


def serve(settings: Settings) -> None:
    """Do all backfills that there are, as a process of its own; return when none is left."""
    os.nice(NICE)
    setup_logging("nightwire.filters")
    engine = os.getppid()
    with stopping() as stop:
        backfiller = Backfiller(settings, stop)
        while not stop.is_set() and os.getppid() == engine and backfiller.round():
            pass


@dataclass
class Backfiller:
    """Does backfills.

    Args:
        settings: The engine's.
        stop: When to leave: after the running batch.
        share: Part of the time in which it works.
    """

    settings: Settings
    stop: Stop
    share: float = SHARE
    _said: dict[str, tuple[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._jobs = Jobs(self.settings.state)
        self._outbox = Outbox(self.settings.bootstrap)
        self._watch = FilterWatch(self.settings.bootstrap)
        self._restart()

    def round(self) -> bool:
        """Do a batch of each of some backfills, those with the least to do; return whether there were any."""
        due = sorted(self._jobs.due(), key=self._left)[:AT_ONCE]
        for job in due:
            began = time.monotonic()
            try:
                self.step(job)
            except (KafkaException, DeliveryError, RegistryAwayError, TimeoutError) as error:
                log.warning("the backfill of %s is tried again: %s", job.id, error)
                self._restart()
                self.stop.wait(PAUSE)
            self.stop.wait((time.monotonic() - began) * (1 / self.share - 1))
        return bool(due)

    def step(self, job: Job) -> None:
        """Begin *job*, do its next batch, or end it.

        Raises:
            KafkaException: Kafka is away.
            DeliveryError: Kafka did not take something.
            RegistryAwayError: The registry is away.
        """
        live, reached = self._filter(job), self._jobs.reached(job)
        if live is None:
            self._end(job, f"stopped, version {job.version} is not live: {told(reached or Reached())}")
            return
        until = {spot: end for spot, end in (job.until or {}).items() if live.judges(spot[0])}
        if reached is None:
            self._begin(job, live, until)
        elif reached.strikes >= STRIKES:
            self._end(job, f"stopped, {STRIKES} batches were too slow or failed: {told(reached)}")
        elif (end := advance(reached.at, until, BATCH)) == reached.at:
            self._end(job, f"ended: {told(reached)}")
        else:
            self._say(job, self._go_on(job, live, reached, end))

    def _restart(self) -> None:
        """Make new clients: the old ones may be lost."""
        made_over = outlet(self.settings.registry, State(self.settings.state).schemas)
        self._delivery = Delivery(self.settings.bootstrap, outlet=made_over)

    def _left(self, job: Job) -> int:
        reached = self._jobs.reached(job)
        return 0 if reached is None else reached.whole - reached.done

    def _filter(self, job: Job) -> LiveFilter | None:
        """Return the filter, while this version of it is live."""
        self._watch.refresh()
        known = self._watch.filters
        if known.live_version(job.owner, job.name) != job.version:
            return None
        return _filterset.to_filter(known.versions[job.owner, job.name, job.version])

    def _begin(self, job: Job, live: LiveFilter, until: Mapping[Spot, int]) -> None:
        """Find out where the past begins, and tell what there is of it."""
        past = opening(self.settings.bootstrap, job.since, until)
        reached = Reached(at=past.first, whole=sum(until.values()) - sum(past.first.values()))
        most = self.settings.trial.backfill
        self._tell(job, f"began: {reached.whole:,} alerts {past}; at most {most:,} are sent")
        self._said[job.id] = (0, time.monotonic())
        self._jobs.keep_reached(job, reached)

    def _go_on(self, job: Job, live: LiveFilter, reached: Reached, end: Mapping[Spot, int]) -> Reached:
        """Judge, decide and send a batch; on return it is accounted, and noted as done."""
        state, number = self._jobs.state(job), reached.batch
        decision = state.decision(number)
        if decision is None:
            left = max(0, self.settings.trial.backfill - reached.sent)
            decision = decide_past(self._judged(job, live, reached, end), live, number, now_ms(), left)
            state.keep_decision(number, decision, Caps())
        unsent = self._delivery.send(decision)
        self._delivery.account(past_accounts(job, decision, unsent))
        now = after(reached, end, decision)
        self._jobs.keep_reached(job, now)
        return now

    def _judged(self, job: Job, live: LiveFilter, reached: Reached, end: Mapping[Spot, int]) -> Judged:
        """Return what the worker says of a batch."""
        state = self._jobs.state(job)
        state.keep_filters(1, _filterset.dump([live]))
        options = {**self.settings.options(), "state": str(state.root)}
        work = tuple(ranges(reached.at, end, {}))
        rows = _worker.run(_worker.task(options, work, 1, fed_sources([live])))
        return judged(pa.Table.from_batches(rows, COLUMNS))

    def _say(self, job: Job, reached: Reached) -> None:
        """Tell how far it is: at most at every tenth, and not too often."""
        tenths = 10 * reached.done // reached.whole
        before, when = self._said.get(job.id, (0, -QUIET))
        if tenths > before and time.monotonic() - when >= QUIET:
            self._said[job.id] = (tenths, time.monotonic())
            self._tell(job, f"at {10 * tenths} %: {told(reached)}")

    def _end(self, job: Job, how: str) -> None:
        self._tell(job, how)
        self._jobs.done(job)

    def _tell(self, job: Job, what: str) -> None:
        tell(self._outbox, [Notice(job.key, job.version, f"{STAGE} {what}", good=True)])
