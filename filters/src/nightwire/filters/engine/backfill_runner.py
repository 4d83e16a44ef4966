"""The process that does backfills: beside the engine, nicely, a small batch of each in turn.

What it judges, decides and sends is on disk as in the engine: a process that begins again where
another ended sends the same alerts once more, never others.
"""

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset
from httpx import HTTPError

from nightwire.core.kafka import DeliveryError, TopicPartition, login, watermarks
from nightwire.core.presence import ArchiveClient
from nightwire.core.runtime import Stop, now_ms, setup_logging, stopping
from nightwire.filters.decision.backfill_decision import (
    BATCH,
    STAGE,
    STRIKES,
    BackfillJob,
    BackfillProgress,
    advance_progress,
    backfill_accounts,
    decide_backfill,
    progress_text,
)
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.notices import Notice
from nightwire.filters.decision.quota import Quotas
from nightwire.filters.delivery.deliver import Delivery
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.delivery.transform_writer import open_transform_writer
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.engine.supervisor import send_notices
from nightwire.filters.evaluation.worker import make_task, run
from nightwire.filters.model import filter_set
from nightwire.filters.model.chains import derived_sources, is_derived
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import COLUMNS, JudgedBatch, judged_batch
from nightwire.filters.model.offsets import OffsetRange, advance, ranges
from nightwire.filters.reading.fetch import TIMEOUT, ExpiredCount, fetch, range_consumer
from nightwire.filters.reading.followers import FilterFollower
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

TOLD = 3
"""After so many failures in turn its owner hears that it waits."""

MAX_ERROR = 300
"""Longest error that an owner is told. [character]"""

QUIET = 5.0
"""Shortest time between two words of progress. [s]"""


def run_backfills(settings: EngineSettings) -> None:
    """Do all backfills that there are, as a process of its own; return when none is left."""
    os.nice(NICE)
    setup_logging("nightwire.filters")
    engine = os.getppid()
    with stopping() as stop:
        backfiller = BackfillRunner(settings, stop)
        while not stop.is_set() and os.getppid() == engine and backfiller.round():
            pass


@dataclass
class BackfillRunner:
    """Does backfills.

    Args:
        settings: The engine's.
        stop: When to leave: after the running batch.
        share: Part of the time in which it works.
    """

    settings: EngineSettings
    stop: Stop
    share: float = SHARE
    _reported: dict[str, tuple[int, float]] = field(default_factory=dict)
    _failures: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        at = self.settings
        self._past = ArchiveClient(at.archive, login(at.bootstrap)) if at.archive else None
        self._jobs = BackfillJobs(self.settings.state)
        self._control = ControlProducer(self.settings.bootstrap)
        self._watch = FilterFollower(self.settings.bootstrap)
        self._restart()

    def round(self) -> bool:
        """Do a batch of those backfills with the least to do; return whether there were any.

        Those that failed come behind those that did not, so that they delay nobody.
        """
        due = sorted(self._jobs.due(), key=lambda job: (self._failures[job.id], self._left(job)))[:AT_ONCE]
        for job in due:
            began = time.monotonic()
            self._turn(job)
            self.stop.wait((time.monotonic() - began) * (1 / self.share - 1))
        return bool(due)

    def _turn(self, job: BackfillJob) -> None:
        """Give *job* its turn; try it again if Kafka failed it, end it if it failed itself."""
        try:
            self.step(job)
        except (KafkaException, DeliveryError, RegistryAwayError, HTTPError, TimeoutError) as error:
            log.warning("the backfill of %s is tried again: %s", job.id, error)
            self._failures[job.id] += 1
            self._restart()
            if self._failures[job.id] == TOLD:
                self._try_to_tell(job, f"waits, and is tried again: {_why(error)}")
            self.stop.wait(PAUSE)
        except Exception as error:
            log.exception("the backfill of %s is ended", job.id)
            self._end(job, f"stopped, it failed: {type(error).__name__}: {str(error)[:MAX_ERROR]}")
        else:
            if self._failures.pop(job.id, 0) >= TOLD:
                self._try_to_tell(job, "goes on")

    def step(self, job: BackfillJob) -> None:
        """Begin *job*, do its next batch, or end it.

        Raises:
            KafkaException: Kafka is away.
            DeliveryError: Kafka did not take something.
            RegistryAwayError: The registry is away.
            HTTPError: The archive is away.
        """
        live, progress = self._filter(job), self._jobs.progress(job)
        if live is None or self._jobs.stopped(job):
            reached = progress_text(progress or BackfillProgress())
            why = f"version {job.version} is not live" if live is None else "as its owner asked"
            self._end(job, f"stopped, {why}: {reached}")
            return
        until = {
            partition: end for partition, end in (job.until or {}).items() if live.reads_topic(partition[0])
        }
        if progress is None:
            self._begin(job, live, until)
        elif progress.strikes >= STRIKES:
            self._end(job, f"stopped, {STRIKES} batches were too slow or failed: {progress_text(progress)}")
        elif (end := advance(progress.at, until, BATCH)) == progress.at:
            self._end(job, f"ended: {progress_text(progress)}")
        else:
            self._report(job, self._go_on(job, live, progress, end))

    def _restart(self) -> None:
        """Make new clients: the old ones may be lost."""
        writer = open_transform_writer(self.settings.registry, EngineState(self.settings.state).schemas)
        self._delivery = Delivery(self.settings.bootstrap, transform_writer=writer, past=self._past)

    def _left(self, job: BackfillJob) -> int:
        progress = self._jobs.progress(job)
        return 0 if progress is None else progress.whole - progress.done

    def _filter(self, job: BackfillJob) -> LiveFilter | None:
        """Return the filter, while this version of it is live."""
        self._watch.refresh()
        known = self._watch.filters
        if known.live_version(job.owner, job.name) != job.version:
            return None
        return filter_set.to_filter(known.versions[job.owner, job.name, job.version])

    def _begin(self, job: BackfillJob, live: LiveFilter, until: Mapping[TopicPartition, int]) -> None:
        """Find the start of the backfill, and tell its owner how many alerts there are."""
        start = find_start(self.settings.bootstrap, max(0, job.since), until, self._past)
        progress = BackfillProgress(at=start.first, whole=sum(until.values()) - sum(start.first.values()))
        most = self.settings.trial.backfill
        self._tell(job, f"began: {progress.whole:,} alerts {start}; at most {most:,} are sent")
        self._reported[job.id] = (0, time.monotonic())
        self._jobs.keep_progress(job, progress)

    def _go_on(
        self,
        job: BackfillJob,
        live: LiveFilter,
        progress: BackfillProgress,
        end: Mapping[TopicPartition, int],
    ) -> BackfillProgress:
        """Judge, decide and send a batch; on return it is accounted, and noted as done."""
        state, number = self._jobs.state(job), progress.batch
        decision = state.decision(number)
        if decision is None:
            left = max(0, self.settings.trial.backfill - progress.sent)
            decision = decide_backfill(self._judged(job, live, progress, end), live, number, now_ms(), left)
            state.keep_decision(number, decision, Quotas())
        unsent = self._delivery.send(decision)
        self._delivery.account(backfill_accounts(job, decision, unsent))
        now = advance_progress(progress, end, decision)
        self._jobs.keep_progress(job, now)
        return now

    def _judged(
        self,
        job: BackfillJob,
        live: LiveFilter,
        progress: BackfillProgress,
        end: Mapping[TopicPartition, int],
    ) -> JudgedBatch:
        """Return the judged batch."""
        state = self._jobs.state(job)
        state.keep_filters(1, filter_set.dump([live]))
        options = {
            **self.settings.options(),
            "state": str(state.root),
            "archive": self.settings.archive or "",
        }
        work = tuple(ranges(progress.at, end, {}))
        rows = run(make_task(options, work, 1, derived_sources([live])))
        return judged_batch(pa.Table.from_batches(rows, COLUMNS))

    def _report(self, job: BackfillJob, progress: BackfillProgress) -> None:
        """Tell how far it is: at most at every tenth, and not too often."""
        tenths = 10 * progress.done // progress.whole
        before, when = self._reported.get(job.id, (0, -QUIET))
        if tenths > before and time.monotonic() - when >= QUIET:
            self._reported[job.id] = (tenths, time.monotonic())
            self._tell(job, f"at {10 * tenths} %: {progress_text(progress)}")

    def _end(self, job: BackfillJob, how: str) -> None:
        self._tell(job, how)
        self._jobs.done(job)

    def _try_to_tell(self, job: BackfillJob, what: str) -> None:
        with suppress(KafkaException, DeliveryError):  # then Kafka is what is away
            self._tell(job, what)

    def _tell(self, job: BackfillJob, what: str) -> None:
        send_notices(self._control, [Notice(job.key, job.version, f"{STAGE} {what}", good=True)])


def _why(error: Exception) -> str:
    """Return what is away, as its owner may know it."""
    what = "the archive does not answer: " if isinstance(error, HTTPError) else ""
    return f"{what}{type(error).__name__}: {str(error)[:MAX_ERROR]}"


supervisor_log = logging.getLogger("nightwire.filters")

LOOK = 1.0
"""Pause between looks for backfills. [s]"""

RETRY = 5.0
"""Pause after a process that failed. [s]"""

PATIENCE = 10.0
"""Longest wait for the process to finish its batch. [s]"""


class BackfillSupervisor:
    """Starts a process where there are backfills, and again where one dies.

    Args:
        settings: The engine's.
        stop: When to leave.
    """

    def __init__(self, settings: EngineSettings, stop: Stop) -> None:
        self._settings, self._stop = settings, stop

    def start(self) -> threading.Thread:
        """Look for backfills in a thread of its own."""
        thread = threading.Thread(target=self._keep, name="backfills", daemon=True)
        thread.start()
        return thread

    def _keep(self) -> None:
        jobs = BackfillJobs(self._settings.state)
        while not self._stop.wait(LOOK):
            if jobs.due() and (status := self._run()):
                supervisor_log.warning(
                    "the process of the backfills ended with status %d; starting it again", status
                )
                self._stop.wait(RETRY)

    def _run(self) -> int | None:
        """Run a process to its end, or until we are stopped; return its exit status."""
        process = get_context("spawn").Process(target=run_backfills, args=(self._settings,), daemon=True)
        process.start()
        while process.is_alive() and not self._stop.is_set():
            process.join(0.2)
        if process.is_alive():
            process.terminate()
            process.join(PATIENCE)
        return None if self._stop.is_set() else process.exitcode


@dataclass(frozen=True)
class BackfillStart:
    """Where a stretch of the past begins.

    Attributes:
        first: The first offset of each partition; its end where there is nothing.
        since: From when on it was asked for. [ms since 1970, UTC]
        kept: Since when everything is there, where older records have expired. [ms since 1970, UTC]
    """

    first: Mapping[TopicPartition, int]
    since: int
    kept: int | None = None

    def __str__(self) -> str:
        text = f"since {_minute(self.since)}"
        return text if self.kept is None else f"{text}; what came before {_minute(self.kept)} has expired"


def find_start(
    bootstrap: str, since: int, until: Mapping[TopicPartition, int], past: ArchiveClient | None = None
) -> BackfillStart:
    """Return where the records begin that Kafka took at *since* or later, of those before *until*.

    Args:
        bootstrap: Kafka's address.
        since: [ms since 1970, UTC]
        until: The offset after the last one that is wanted, of each partition.
        past: The archive, which has what Kafka has forgotten; None for none.

    Raises:
        KafkaException: Kafka does not answer.
        HTTPError: The archive does not answer.
    """
    consumer = range_consumer(bootstrap)
    try:
        wanted = [TopicPartitionOffset(*partition, since) for partition in sorted(until)]
        found = consumer.offsets_for_times(wanted, timeout=TIMEOUT) if wanted else []
        later = {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}
        first = {partition: min(later.get(partition, end), end) for partition, end in until.items()}
        archived = {} if past is None else _archived(consumer, first, since, past)
        kept = (_whole_since(consumer, one, first[one]) for one in first if one not in archived)
        latest = max((one for one in kept if one is not None), default=None)
        return BackfillStart(first | archived, since, latest)
    finally:
        consumer.close()


def _archived(
    consumer: Consumer, first: Mapping[TopicPartition, int], since: int, past: ArchiveClient
) -> dict[TopicPartition, int]:
    """Return where the archive begins, for the partitions of which it has what was before."""
    begins = {
        one: past.first_since(one, since)
        for one, offset in first.items()
        if not is_derived(one[0]) and 0 < offset <= watermarks(consumer, *one).low
    }
    return {one: begin for one, begin in begins.items() if begin is not None and begin < first[one]}


def _whole_since(consumer: Consumer, partition: TopicPartition, first: int) -> int | None:
    """Return since when a partition is complete, if records after *first* may have expired."""
    low, end = watermarks(consumer, *partition)
    if low == 0 or not first or first > low:
        return None
    some = next(fetch(consumer, OffsetRange(*partition, low, end), ExpiredCount(), patience=TIMEOUT), ())
    return some[0].timestamp()[1] if some else now_ms()


def _minute(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d %H:%M} UTC"
