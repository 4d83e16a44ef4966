"""One batch judged by the filters of all owners: an owner's one by one, all owners at once."""

import math
import os
import selectors
import signal
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from nightwire.filters.sandbox.pool import FilterProcess, ProcessLostError, ProcessPool
from nightwire.filters.sandbox.preload import groups_imported, survey_group
from nightwire.filters.sandbox.protocol import (
    ANSWER_HEADER,
    BATCH,
    GRACE_S,
    INTERRUPT,
    JUDGE,
    NONCE_SIZE,
    STOP,
    Answer,
    ForgedError,
    answer_length,
    decode_answer,
)
from nightwire.filters.sandbox.shared_batch import SharedBatch
from nightwire.filters.sandbox.types import Limits, Outcome, RowFilter, Usage

TICK_S = 0.01
"""Shortest wait for an answer or a limit. [s]"""

CHUNK = 1 << 18
"""Read of an answer at a time. [byte]"""

STOP_LIMITS = Limits(cpu_s=math.inf, wall_s=GRACE_S, total_s=5 * GRACE_S)
"""For a filter that was told to stop."""

DOES_NOT_STOP = "and did not stop when it was told to: it is inside C code, or it catches everything"
DOES_NOT_LISTEN = "its process takes no questions"
TOOK_ALL_MEMORY = "took all of {:,} MiB of memory"


@dataclass
class OwnerQueue:
    """An owner's filters.

    Attributes:
        waiting: Those without an outcome; the first is being judged.
        process: The process that has the batch; None: there is none.
        retried: Filters whose process was killed once, not by the sandbox, which is no fault of
            theirs.
    """

    owner: str
    waiting: deque[RowFilter] = field(default_factory=deque)
    process: FilterProcess | None = None
    retried: set[str] = field(default_factory=set)


class BatchRun:
    """Judges one batch.

    A filter that ends its process, or makes it grow beyond half of its limit, does not take its
    owner's other filters along: they are judged in a new process.

    Args:
        pool: The owners' processes.
        shared: The batch.
        limits: Of each filter.
    """

    def __init__(self, pool: ProcessPool, shared: SharedBatch, limits: Limits) -> None:
        self._pool, self._shared, self._limits = pool, shared, limits
        self._rows = int(shared.description["count"])
        self._outcomes: dict[str, Outcome] = {}
        self._running: dict[Job, OwnerQueue] = {}
        self._selector = selectors.DefaultSelector()

    def judge(self, filters: Iterable[RowFilter]) -> Mapping[str, Outcome]:
        """Return the outcome of each of *filters*, by ``owner/name``.

        Raises:
            SandboxError: No process can be had.
        """
        queues: dict[str, OwnerQueue] = {}
        for row_filter in filters:
            queues.setdefault(row_filter.owner, OwnerQueue(row_filter.owner)).waiting.append(row_filter)
        with self._selector:
            for queue in queues.values():
                self._next(queue)
            while self._running:
                self._step()
        return self._outcomes

    def _next(self, queue: OwnerQueue) -> None:
        """Start the next filter of *queue*; after the last, have its process forget the batch."""
        while queue.waiting:
            try:
                return self._start(queue)
            except ProcessLostError:
                self._discard(queue)
                if self._was_retried(queue):
                    self._outcomes[queue.waiting.popleft().key] = Outcome(0, killed=DOES_NOT_LISTEN)
        self._pool.release_batch(queue.owner)
        return None

    def _start(self, queue: OwnerQueue) -> None:
        if queue.process is None:
            described = survey_group(self._shared.description["survey_name"])
            groups = groups_imported(queue.waiting) | {described}
            queue.process = self._pool.process_of(queue.owner, groups)
            mentioned = sorted({name for one in queue.waiting for name in one.fields or one.canonical})
            description = {**self._shared.description, "mentioned": mentioned}
            queue.process.send(BATCH, description, descriptor=self._shared.descriptor)
        row_filter = queue.waiting[0]
        job = Job(queue.process, row_filter, self._rows, self._limits.within(row_filter.cpu_s))
        self._selector.register(queue.process.channel, selectors.EVENT_READ, job)
        self._running[job] = queue

    def _step(self) -> None:
        """Wait until a process answers or a filter reaches a limit."""
        soonest = min(job.remaining_s() for job in self._running)
        for key, _ in self._selector.select(max(soonest, TICK_S)):
            self._receive(key.data)
        for job in [job for job in self._running if job.remaining_s() <= 0]:
            if not job.stop():
                self._ended(job, f"{job.exceeded}, {DOES_NOT_STOP}")

    def _receive(self, job: "Job") -> None:
        try:
            answer = job.receive()
        except ProcessLostError:
            self._ended(job)
        except ForgedError as error:
            self._ended(job, str(error))
        else:
            if answer is not None:
                self._answered(job, answer)

    def _answered(self, job: "Job", answer: Answer) -> None:
        queue = self._close(job)
        outcome, large = job.outcome(answer), job.process.held_growth_mb() > self._limits.memory_mb / 2
        if large and outcome.ran_out_of_memory:
            outcome = replace(outcome, killed=TOOK_ALL_MEMORY.format(self._limits.memory_mb))
        self._outcomes[queue.waiting.popleft().key] = outcome
        if job.exceeded or answer.late or large:
            self._discard(queue)
        else:
            job.process.note_run(job.filter)
        self._next(queue)

    def _ended(self, job: "Job", why: str | None = None) -> None:
        """Go on after the process of *job* ended by itself, or has to be ended because of *why*."""
        queue = self._close(job)
        if why is None:
            why = self._exit_text(queue)
        else:
            self._discard(queue)
        if why is not None:
            self._outcomes[queue.waiting.popleft().key] = job.outcome_of_end(why)
        self._next(queue)

    def _exit_text(self, queue: OwnerQueue) -> str | None:
        """Return why *queue*'s process ended; None: it was killed, and its filter is retried."""
        queue.process, status = None, self._pool.end(queue.owner)
        if status == -signal.SIGKILL and not self._was_retried(queue):
            return None
        return exit_text(status)

    def _close(self, job: "Job") -> OwnerQueue:
        job.measure()
        self._selector.unregister(job.process.channel)
        return self._running.pop(job)

    def _discard(self, queue: OwnerQueue) -> None:
        queue.process = None
        self._pool.discard(queue.owner)

    def _was_retried(self, queue: OwnerQueue) -> bool:
        """Whether the first filter was judged twice; notes that it was judged once."""
        key = queue.waiting[0].key
        tried = key in queue.retried
        queue.retried.add(key)
        return tried


class Job:
    """One filter in one process: the request, the answer as it comes, and the time that it takes.

    Args:
        process: Its owner's process, which has the batch.
        row_filter: The filter.
        rows: How many rows the batch has.
        limits: What it may use.

    Attributes:
        exceeded: The limit for which it was told to stop; None: it was not.

    Raises:
        ProcessLostError: The process does not listen.
    """

    def __init__(self, process: FilterProcess, row_filter: RowFilter, rows: int, limits: Limits) -> None:
        self.process, self.filter, self.rows = process, row_filter, rows
        self.exceeded: str | None = None
        self._limits, self._received = limits, bytearray()
        self._at_start, self._at_stop = process.usage(), Usage(0.0, 0.0)
        one_by_one = row_filter.columns is None and process.has_run(row_filter)
        self._timer = StuckTimer(limits.alert_s if one_by_one else math.inf)
        self._nonce = os.urandom(NONCE_SIZE)
        self._row, self._measured = rows, Outcome(0)
        asked = ("key", "source", "entry", "transform", "columns")
        names = {name: getattr(row_filter, name) for name in asked}
        process.send(JUDGE, {**names, "whole": row_filter.fields is None}, self._nonce)

    def receive(self) -> Answer | None:
        """Read what the process sent; return the answer once it is whole.

        Raises:
            ProcessLostError: The process is gone.
            ForgedError: That is no answer.
        """
        self._received += self.process.receive(CHUNK)
        if len(self._received) < ANSWER_HEADER.size:
            return None
        whole = answer_length(self._received, self._nonce, self.rows)
        if len(self._received) > whole:
            raise ForgedError(f"it said {len(self._received) - whole} bytes more than its answer has")
        return decode_answer(self._received, self._nonce, self.rows) if len(self._received) == whole else None

    def remaining_s(self) -> float:
        """Return after how long it may reach a limit, at the earliest. [s]"""
        used = self.process.usage()
        if self.exceeded is not None:
            return remaining_s(STOP_LIMITS, used.since(self._at_stop))
        used = used.since(self._at_start)
        return min(remaining_s(self._limits, used), self._stuck_remaining_s(used.cpu_s))

    def _stuck_remaining_s(self, cpu_s: float) -> float:
        """Return after how long it is stuck at one alert, *cpu_s* of CPU time used before. [s]"""
        row = self.process.current_row()
        if row != self._timer.row:  # what it used until now went on others
            used = self.process.usage().since(self._at_start)
            self._timer.row, self._timer.since_s, self._timer.expired = row, used.cpu_s, False
        return self._timer.remaining_s(cpu_s)

    def stop(self) -> bool:
        """Tell the filter to stop; return False where it was told before."""
        if self.exceeded is not None:
            return False
        now = self.process.usage()
        used = now.since(self._at_start)
        if remaining_s(self._limits, used) > 0:
            self._timer.since_s, self._timer.expired = used.cpu_s, True
            self.process.interrupt(INTERRUPT)
        else:
            self._at_stop, self.exceeded = now, exceeded_limit(self._limits, used)
            self.process.interrupt(STOP)
        return True

    def measure(self) -> None:
        """Note what it used and the row that it was at, while the process is there."""
        self._row = self.process.current_row()
        cpu_s = max(0.0, self.process.usage().since(self._at_start).cpu_s)
        self._measured = Outcome(0, cpu_s=cpu_s)

    def outcome(self, answer: Answer) -> Outcome:
        """Return the outcome of a filter that answered, once it is measured."""
        faults = answer.faults
        if answer.late and faults:
            last = max(faults)
            faults[last] = f"{self.exceeded or self._timer.exceeded or 'it stopped'}: {faults[last]}"
        return replace(
            self._measured,
            evaluated=answer.judged,
            passed=answer.passed,
            rank=answer.rank,
            faults=faults,
            added=answer.added,
            late=answer.late,
        )

    def outcome_of_end(self, why: str) -> Outcome:
        """Return the outcome of a filter whose process ended, once it is measured."""
        faults = {self._row: why} if self._row < self.rows else {}
        late = self.exceeded is not None
        return replace(self._measured, evaluated=len(faults), faults=faults, late=late, killed=why)


@dataclass
class StuckTimer:
    """How long a filter has been at one row.

    Attributes:
        limit_s: CPU time that it may take for one row. [s]
        row: The row that it was seen at last.
        since_s: CPU time that it had used when it was first seen there, or told to stop. [s]
        expired: It was told to stop because it was there for too long.
    """

    limit_s: float
    row: int = 0
    since_s: float = 0.0
    expired: bool = False

    def remaining_s(self, cpu_s: float) -> float:
        """Return after how long it has been there for too long, *cpu_s* of CPU time used. [s]"""
        return self.limit_s - (cpu_s - self.since_s)

    @property
    def exceeded(self) -> str | None:
        """The limit for which it was told to stop; None: it was not."""
        return f"took longer than {self.limit_s:g} s of CPU time for one alert" if self.expired else None


def remaining_s(limits: Limits, used: Usage) -> float:
    """Return after how long one of *limits* may be reached, at the earliest; zero: one is. [s]"""
    return min(limits.cpu_s - used.cpu_s, limits.wall_s - used.own_s, limits.total_s - used.elapsed_s)


def exceeded_limit(limits: Limits, used: Usage) -> str:
    """Return which of *limits* is reached."""
    if used.cpu_s >= limits.cpu_s:
        return f"took longer than {limits.cpu_s:g} s of CPU time"
    if used.own_s >= limits.wall_s:
        return f"took longer than {limits.wall_s:g} s by the clock, {used.cpu_s:.1f} s of it CPU time"
    return f"was not done after {limits.total_s:g} s, of which it had {used.cpu_s:.1f} s of CPU time"


def exit_text(status: int) -> str:
    """Return what became of a process with the exit *status*, a signal's where negative."""
    if status >= 0:
        return f"its process ended by itself, with status {status}"
    if status == -signal.SIGKILL:
        return "its process was killed from outside (SIGKILL), for want of memory perhaps"
    return f"its process crashed ({signal.Signals(-status).name})"
