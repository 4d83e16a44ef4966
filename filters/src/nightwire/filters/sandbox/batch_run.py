"""One batch judged by everybody's filters: an owner's one after the other, all owners at once."""

import math
import os
import selectors
import signal
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from nightwire.filters.sandbox.pool import FilterProcess, ProcessLostError, ProcessPool
from nightwire.filters.sandbox.preload import groups_of
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

CHUNK = 1 << 18
"""Read of an answer at a time. [byte]"""

STOP_LIMITS = Limits(cpu_s=math.inf, wall_s=GRACE_S, patience_s=5 * GRACE_S)
"""For a filter that was told to stop."""


class Job:
    """A filter that is being judged.

    Args:
        child: Its owner's process, which has the batch.
        one: The filter.
        rows: How many rows the batch has.
        limits: What it may use.

    Attributes:
        complaint: Why it was told to stop; None: it was not.

    Raises:
        LostError: The process does not listen.
    """

    def __init__(self, child: FilterProcess, one: RowFilter, rows: int, limits: Limits) -> None:
        self.child, self.filter, self.rows = child, one, rows
        self.complaint: str | None = None
        self._limits, self._said = limits, bytearray()
        self._began, self._told = child.usage(), Usage(0.0, 0.0)
        self._dwell = StuckTimer(limits.alert_s if child.knows(one) else math.inf)
        self._nonce = os.urandom(NONCE_SIZE)
        self._row, self._cost = rows, Outcome(0)
        names = {"key": one.key, "source": one.source, "entry": one.entry, "transform": one.transform}
        child.tell(JUDGE, {**names, "whole": one.fields is None}, self._nonce)

    def hear(self) -> Answer | None:
        """Take in what the process said; return the answer once it is whole.

        Raises:
            LostError: The process is gone.
            ForgedError: That is no answer.
        """
        self._said += self.child.hear(CHUNK)
        if len(self._said) < ANSWER_HEADER.size:
            return None
        whole = answer_length(self._said, self._nonce, self.rows)
        if len(self._said) > whole:
            raise ForgedError(f"it said {len(self._said) - whole} bytes more than its answer has")
        return decode_answer(self._said, self._nonce, self.rows) if len(self._said) == whole else None

    def left_s(self) -> float:
        """Return after how long something must be done about it, at the earliest. [s]"""
        used = self.child.usage()
        if self.complaint is not None:
            return left_s(STOP_LIMITS, used.since(self._told))
        used = used.since(self._began)
        return min(left_s(self._limits, used), self._dwelling_left_s(used.cpu_s))

    def _dwelling_left_s(self, cpu_s: float) -> float:
        """Return after how long it may be at one alert for too long, having used *cpu_s* until now. [s]"""
        row = self.child.row()
        if row != self._dwell.row:  # what it used until now went on others
            self._dwell.row, self._dwell.since_s = row, self.child.usage().since(self._began).cpu_s
        return self._dwell.left_s(cpu_s)

    def press(self) -> bool:
        """Tell the filter to stop; return False where it was told, and does not."""
        if self.complaint is not None:
            return False
        now = self.child.usage()
        used = now.since(self._began)
        if left_s(self._limits, used) > 0:
            self._dwell.since_s, self._dwell.told = used.cpu_s, True
            self.child.knock(INTERRUPT)
        else:
            self._told, self.complaint = now, complaint(self._limits, used)
            self.child.knock(STOP)
        return True

    def measure(self) -> None:
        """Note what it used and where it was; to be asked while the process is there."""
        self._row = self.child.row()
        cpu_s = max(0.0, self.child.usage().since(self._began).cpu_s)
        self._cost = Outcome(0, cpu_s=cpu_s, memory_mb=self.child.grown_mb())

    def answered(self, answer: Answer) -> Outcome:
        """Return what the filter said, once it is measured."""
        faults = answer.faults
        if answer.late and faults:
            last = max(faults)
            faults[last] = f"{self.complaint or self._dwell.complaint or 'it stopped'}: {faults[last]}"
        return replace(
            self._cost,
            evaluated=answer.judged,
            passed=answer.passed,
            rank=answer.rank,
            faults=faults,
            added=answer.added,
            late=answer.late,
        )

    def ended(self, why: str) -> Outcome:
        """Return what is known of a filter, once it is measured, whose process ended or was ended."""
        faults = {self._row: why} if self._row < self.rows else {}
        late = self.complaint is not None
        return replace(self._cost, evaluated=len(faults), faults=faults, late=late, killed=why)


TICK_S = 0.01
"""Shortest wait for something to happen. [s]"""

DOES_NOT_STOP = "and did not stop when it was told to: it is inside C code, or it catches everything"
DOES_NOT_LISTEN = "its process takes no questions"
FULL = "took all of {:,} MiB of memory"


@dataclass
class OwnerQueue:
    """An owner's filters.

    Attributes:
        waiting: Those without an outcome; the first is the one that is judged.
        child: The process that has the batch, if there is one.
        again: Filters whose process was killed, once, and not by us: that is no fault of theirs.
    """

    owner: str
    waiting: deque[RowFilter] = field(default_factory=deque)
    child: FilterProcess | None = None
    again: set[str] = field(default_factory=set)


class BatchRun:
    """Judges one batch.

    A filter that ends its process, or makes it grow beyond half of its limit, does not take its owner's other
    filters along: they are judged in a new process.

    Args:
        children: The owners' processes.
        shared: The batch.
        limits: Of each filter.
    """

    def __init__(self, children: ProcessPool, shared: SharedBatch, limits: Limits) -> None:
        self._children, self._shared, self._limits = children, shared, limits
        self._rows = int(shared.described["count"])
        self._outcomes: dict[str, Outcome] = {}
        self._busy: dict[Job, OwnerQueue] = {}
        self._selector = selectors.DefaultSelector()

    def judge(self, filters: Iterable[RowFilter]) -> Mapping[str, Outcome]:
        """Return the outcome of each of *filters*, by ``owner/name``.

        Raises:
            SandboxError: No process can be had.
        """
        turns: dict[str, OwnerQueue] = {}
        for one in filters:
            turns.setdefault(one.owner, OwnerQueue(one.owner)).waiting.append(one)
        with self._selector:
            for turn in turns.values():
                self._next(turn)
            while self._busy:
                self._step()
        return self._outcomes

    def _next(self, turn: OwnerQueue) -> None:
        """Have *turn*'s next filter judged; after the last one, let its process rest."""
        while turn.waiting:
            try:
                return self._ask(turn)
            except ProcessLostError:
                self._discard(turn)
                if self._was_tried(turn):
                    self._outcomes[turn.waiting.popleft().key] = Outcome(0, killed=DOES_NOT_LISTEN)
        self._children.rest(turn.owner)
        return None

    def _ask(self, turn: OwnerQueue) -> None:
        if turn.child is None:
            groups = groups_of(one.source for one in turn.waiting)
            turn.child = self._children.of(turn.owner, groups)
            turn.child.tell(BATCH, self._shared.described, descriptor=self._shared.descriptor)
        one = turn.waiting[0]
        case = Job(turn.child, one, self._rows, self._limits.within(one.cpu_s))
        self._selector.register(turn.child.channel, selectors.EVENT_READ, case)
        self._busy[case] = turn

    def _step(self) -> None:
        """Wait until somebody answers, or has had its time."""
        soonest = min(case.left_s() for case in self._busy)
        for key, _ in self._selector.select(max(soonest, TICK_S)):
            self._hear(key.data)
        for case in [case for case in self._busy if case.left_s() <= 0]:
            if not case.press():
                self._ended(case, f"{case.complaint}, {DOES_NOT_STOP}")

    def _hear(self, case: Job) -> None:
        try:
            answer = case.hear()
        except ProcessLostError:
            self._ended(case)
        except ForgedError as error:
            self._ended(case, str(error))
        else:
            if answer is not None:
                self._answered(case, answer)

    def _answered(self, case: Job, answer: Answer) -> None:
        turn = self._settle(case)
        outcome, large = case.answered(answer), case.child.held_mb() > self._limits.memory_mb / 2
        if large and outcome.wanted_memory:
            outcome = replace(outcome, killed=FULL.format(self._limits.memory_mb))
        self._outcomes[turn.waiting.popleft().key] = outcome
        if case.complaint or answer.late or large:
            self._discard(turn)
        else:
            case.child.learn(case.filter)
        self._next(turn)

    def _ended(self, case: Job, why: str | None = None) -> None:
        """Go on after the process of *case* ended by itself, or has to be ended because of *why*."""
        turn = self._settle(case)
        if why is None:
            why = self._last_words(turn)
        else:
            self._discard(turn)
        if why is not None:
            self._outcomes[turn.waiting.popleft().key] = case.ended(why)
        self._next(turn)

    def _last_words(self, turn: OwnerQueue) -> str | None:
        """Return what to say of *turn*'s process, which ended; None: nobody is to blame, once."""
        turn.child, status = None, self._children.end(turn.owner)
        if status == -signal.SIGKILL and not self._was_tried(turn):
            return None
        return exit_text(status)

    def _settle(self, case: Job) -> OwnerQueue:
        case.measure()
        self._selector.unregister(case.child.channel)
        return self._busy.pop(case)

    def _discard(self, turn: OwnerQueue) -> None:
        turn.child = None
        self._children.discard(turn.owner)

    def _was_tried(self, turn: OwnerQueue) -> bool:
        """Whether the first filter was judged twice; notes that it was judged once."""
        key = turn.waiting[0].key
        tried = key in turn.again
        turn.again.add(key)
        return tried


def exit_text(status: int) -> str:
    """Return what to say of a process that ended with *status*, a signal's where negative."""
    if status >= 0:
        return f"its process ended by itself, with status {status}"
    if status == -signal.SIGKILL:
        return "its process was killed from outside (SIGKILL), for want of memory perhaps"
    return f"its process crashed ({signal.Signals(-status).name})"


def left_s(limits: Limits, used: Usage) -> float:
    """Return after how long it may have had its time, at the earliest; zero or less: it had. [s]"""
    return min(limits.cpu_s - used.cpu_s, limits.wall_s - used.own_s, limits.patience_s - used.elapsed_s)


def complaint(limits: Limits, used: Usage) -> str:
    """Return which limit it has passed."""
    if used.cpu_s >= limits.cpu_s:
        return f"took longer than {limits.cpu_s:g} s of CPU time"
    if used.own_s >= limits.wall_s:
        return f"took longer than {limits.wall_s:g} s by the clock, {used.cpu_s:.1f} s of it CPU time"
    return f"was not done after {limits.patience_s:g} s, of which it had {used.cpu_s:.1f} s of CPU time"


@dataclass
class StuckTimer:
    """How long a filter has been at one row, as far as it shows.

    Attributes:
        limit_s: CPU time that it may take for one. [s]
        row: Where it was seen last.
        since_s: CPU time that it had used when it was seen there first, or was told last. [s]
        told: It was told that it is there for too long.
    """

    limit_s: float
    row: int = 0
    since_s: float = 0.0
    told: bool = False

    def left_s(self, cpu_s: float) -> float:
        """Return after how long it is too long there, having used *cpu_s* before it was seen there. [s]"""
        return self.limit_s - (cpu_s - self.since_s)

    @property
    def complaint(self) -> str | None:
        """Why it was told to stop; None: it was not."""
        return f"took longer than {self.limit_s:g} s of CPU time for one alert" if self.told else None
