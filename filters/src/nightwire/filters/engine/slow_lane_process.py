"""The processes of the slow lanes: beside the engine, nicely, owner after owner in turn.

Owners share the time, however many filters they have: the one that had least of it so far is next.
"""

import logging
import math
import os
import signal
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import MappingProxyType

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry, Summary

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import Backoff, Stop, now_ms, setup_logging, stopping
from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.slow_lanes import SlowLanes, owner_of
from nightwire.filters.delivery.deliver import AcknowledgedCopy
from nightwire.filters.engine.batch import BatchClients
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.engine.slow_lane import SlowLane
from nightwire.filters.evaluation.worker import SLOW_LIMITS, make_task, prepare
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.offsets import Offset, Positions, planned_at, positions
from nightwire.filters.sandbox import SandboxError, die_with_parent
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.filters.slow")

NICE_AT_START = 5
"""The slow lanes take what the quick one leaves (``nice``), but as they start: their sandbox, which
imports much and judges nothing, keeps this, or on a busy machine they would be minutes late."""

IDLE_S = 0.1
"""Pause where no lane has anything to do. [s]"""

LOOK_AGAIN_S = 1.0
"""Where nothing is new, a lane may still be due: a visit is over, a failure is to be tried again.
[s]"""

LEAVE_S = 60.0
"""Without lanes for so long the process ends. [s]"""

QUIET_S = 0.5
"""The quick lane is at rest when it had no batch for so long: the next one may be being planned.
[s]"""

LONGEST_PAUSE_S = 10.0
"""Longest that the slow lanes wait for the quick one at a stretch: a visit of 10,000 alerts takes
half of it. [s]"""

LOOK_S = 5.0
"""Pause between two words on how far lanes are behind. [s]"""

TRANSIENT = (KafkaException, DeliveryError, RegistryAwayError, SandboxError, TimeoutError)


@dataclass(frozen=True)
class LaneBatch:
    """A batch that a slow lane has done.

    Attributes:
        lane: The lane.
        number: The batch.
        decision: What was decided.
        filters: The filters, by number.
        copies: What Kafka acknowledged.
        again: Whether it was counted before.
    """

    lane: str
    number: int
    decision: Decision
    filters: Sequence[LiveFilter]
    copies: Sequence[AcknowledgedCopy]
    again: bool


@dataclass(frozen=True)
class LaneLag:
    """How far a lane is behind the quick one: records, and time since that was there. [s]"""

    lane: str
    filters: Sequence[LiveFilter]
    records: int
    seconds: float


@dataclass
class LaneObserver:
    """Tells the engine of batches.

    Args:
        send: Takes what is told.
    """

    send: Callable[[LaneBatch | LaneLag], object]
    lane: str = ""
    number: int = 0
    phase: Summary = field(
        default_factory=lambda: Summary(
            "nightwire_filters_slow_phase_seconds", "Parts.", ["phase"], registry=CollectorRegistry()
        )
    )
    _copies: list[AcknowledgedCopy] = field(default_factory=list)

    def acknowledged(self, copy: AcknowledgedCopy) -> None:
        """Remember a copy until its batch is done."""
        self._copies.append(copy)

    def batch_begins(self) -> None:
        """Forget the copies of a batch that failed."""
        self._copies = []

    def batch_done(
        self, decision: Decision, live: Sequence[LiveFilter], held: int, seconds: float, *, again: bool
    ) -> None:
        """Tell of a batch."""
        del held, seconds
        self.send(LaneBatch(self.lane, self.number, decision, live, self._copies, again))
        self._copies = []


@dataclass
class QuickClock:
    """Remembers when the quick lane was where, to the second.

    Args:
        longest: How long it is remembered. [s]
        since: What was before this counts as then: no lane could follow while the engine was down.
            [ms since 1970, UTC]
    """

    longest: float
    since: int = 0
    _seen: deque[tuple[int, Positions]] = field(default_factory=deque)
    _latest: tuple[int, Positions] = (0, MappingProxyType({}))

    def note(self, at: int, there: Positions) -> None:
        """Note where the quick lane is. [ms since 1970, UTC]"""
        at = max(at, self.since)
        self._latest = at, there
        if not self._seen or at - self._seen[-1][0] >= 1000:
            self._seen.append((at, there))
            while at - self._seen[0][0] > 1000 * self.longest:
                self._seen.popleft()

    def seconds_behind(self, here: Positions, now: int) -> float:
        """Return how long ago the quick lane left *here*; 0 where it is no further. [s]"""
        for at, there in (*self._seen, self._latest):
            if any(there.get(partition, 0) > offset for partition, offset in here.items()):
                return max(0.0, (now - at) / 1000)
        return 0.0


@dataclass
class PauseBudget:
    """Lets slow lanes wait while the quick one is at work, for half of the time at most.

    Args:
        most: Longest pause at a stretch. [s]
    """

    most: float = LONGEST_PAUSE_S
    _left: float = LONGEST_PAUSE_S
    _busy_at: float = -math.inf
    _looked_at: float = 0.0
    _pausing: bool = False

    def pause(self, now: float, *, busy: bool) -> bool:
        """Return whether to wait a moment longer.

        Args:
            now: The time. [s, monotonic]
            busy: Whether the quick lane is at work now.
        """
        past = now - self._looked_at
        self._left = min(self.most, self._left + (-past if self._pausing else past))
        self._busy_at = now if busy else self._busy_at
        self._looked_at, self._pausing = now, now - self._busy_at < QUIET_S and self._left > 0
        return self._pausing


def part_of(lane: str, processes: int) -> int:
    """Return which of so many processes runs a lane: one for all lanes of an owner."""
    return zlib.crc32(owner_of(lane).encode()) % processes


def process_name(part: int) -> str:
    """Return the name of a process."""
    return f"slow-lanes-{part}"


@dataclass
class SlowLaneWorker:
    """Runs the slow lanes of some owners.

    Args:
        settings: The engine's.
        quick: The state of the quick lane.
        send: Takes what is told to the engine.
        part: The number of this process, and
        of: how many processes there are.
    """

    settings: EngineSettings
    quick: EngineState
    send: Callable[[LaneBatch | LaneLag], object]
    part: int = 0
    of: int = 1
    _lanes: dict[str, SlowLane] = field(default_factory=dict)
    _rests: dict[str, tuple[Backoff, float]] = field(default_factory=dict)
    _looked: float = 0.0
    _pauses: PauseBudget = field(default_factory=PauseBudget)
    _idle: tuple[float, Offset, set[str]] = field(default_factory=lambda: (0.0, {}, set()))

    def __post_init__(self) -> None:
        self._jobs = SlowLanes(self.settings.state)
        self._observer = LaneObserver(self.send)
        self._clients = BatchClients(self.settings, self.quick, self._observer.acknowledged)
        self.clock = QuickClock(2 * self.settings.most_behind, now_ms())

    def lanes(self) -> Mapping[str, SlowLane]:
        """Return the lanes of this process's owners."""
        names = [one for one in self._jobs.names() if part_of(one, self.of) == self.part]
        for name in self._lanes.keys() - {*names}:
            del self._lanes[name]
        least = min((one.used for one in self._lanes.values()), default=0.0)
        for name in names:
            if name not in self._lanes:
                self._lanes[name] = SlowLane(name, self.settings, self._clients, self._observer, least)
        return self._lanes

    def round(self) -> bool:
        """Do a batch of the lane that had least time; return whether there was anything to do now.

        While the quick lane is at work that is nothing, for half of the time at most.
        """
        lanes, bound = self.lanes(), self.quick.committed()
        self.clock.note(planned_at(bound), positions(bound))
        self._tell_lags(bound)
        if self._pauses.pause(time.monotonic(), busy=self.quick.in_progress()) or self._nothing_new(bound):
            return False
        now, due = time.monotonic(), list[tuple[SlowLane, Offset]]()
        for name, lane in [*lanes.items()]:
            if lane.has_ended(bound):
                self._jobs.done(name)
            elif self._rests.get(name, (None, 0.0))[1] <= now:
                end = lane.plan(bound, too_old=self._seconds_behind(lane, bound) > self.settings.most_behind)
                due += [(lane, end)] if end is not None else []
        if due:
            self._turn(*min(due, key=lambda one: one[0].used))
        else:
            self._idle = time.monotonic(), bound, {*lanes}
        return bool(due)

    def _nothing_new(self, bound: Offset) -> bool:
        """Return whether all is as it was a moment ago, when there was nothing to do."""
        at, there, lanes = self._idle
        return (there, lanes) == (bound, {*self._lanes}) and time.monotonic() - at < LOOK_AGAIN_S

    def _seconds_behind(self, lane: SlowLane, bound: Offset) -> float:
        ahead = lane.ahead(bound)
        here = {partition: ahead.here[partition] for partition in ahead.read()}
        return self.clock.seconds_behind(here, now_ms())

    def _turn(self, lane: SlowLane, end: Offset) -> None:
        """Give a lane its turn; one that fails is tried again, behind all that do not."""
        began = time.monotonic()
        self._observer.lane, self._observer.number = lane.name, lane.number
        try:
            lane.run(end)
            self._rests.pop(lane.name, None)
        except TRANSIENT as error:
            log.warning("batch %d of slow lane %s is tried again: %s", lane.number, lane.name, error)
            self._clients.restart()
            self._rest(lane)
        except Exception:
            log.exception("batch %d of slow lane %s failed; it is tried again", lane.number, lane.name)
            self._rest(lane)
        lane.used += time.monotonic() - began

    def _rest(self, lane: SlowLane) -> None:
        backoff, _ = self._rests.get(lane.name, (Backoff(), 0.0))
        self._rests[lane.name] = backoff, time.monotonic() + backoff.next()

    def _tell_lags(self, bound: Offset) -> None:
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        for lane in self._lanes.values():
            ahead = lane.ahead(bound)
            self.send(
                LaneLag(
                    lane.name, ahead.filters, lane.records_behind(bound), self._seconds_behind(lane, bound)
                )
            )


def run_slow_lanes(
    settings: EngineSettings, quick: EngineState, part: int, of: int, parent: int, engine: Connection
) -> None:
    """Run the slow lanes of some owners, as a process of its own, until there are none.

    Args:
        settings: The engine's.
        quick: The state of the quick lane.
        part: The number of this process, and
        of: how many processes there are.
        parent: The engine's process: this one ends with it.
        engine: Takes what is told to the engine.
    """
    die_with_parent(parent)
    os.nice(NICE_AT_START)
    setup_logging("nightwire.filters")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stopping() as stop:
        with suppress(*TRANSIENT):  # the first batch tries again, and says so
            prepare(make_task({**settings.options(), "owner": process_name(part)}, (), 0))
        os.nice(SLOW_LIMITS.nice)
        worker = SlowLaneWorker(settings, quick, engine.send, part, of)
        keep_running(worker, stop)


def keep_running(worker: SlowLaneWorker, stop: Stop) -> None:
    """Do rounds until stopped, or without lanes for a while."""
    idle_since = time.monotonic()
    while not stop.is_set() and time.monotonic() - idle_since < LEAVE_S:
        if worker.round():
            idle_since = time.monotonic()
            continue
        if worker.lanes():
            idle_since = time.monotonic()
        stop.wait(IDLE_S)


supervisor_log = logging.getLogger("nightwire.filters")

SEARCH_S = 0.5
"""Pause between looks for lanes. [s]"""

RETRY_S = 2.0
"""Pause after a process that failed. [s]"""

PATIENCE_S = 10.0
"""Longest wait for the processes to finish their batches. [s]"""


class SlowLaneSupervisor:
    """Starts the processes of the slow lanes where there are lanes, and again where one dies.

    Args:
        settings: The engine's.
        quick: The state of the quick lane.
        observe: Is called with what they tell, in one thread.
        stop: When to leave.
    """

    def __init__(
        self,
        settings: EngineSettings,
        quick: EngineState,
        observe: Callable[[LaneBatch | LaneLag], object],
        stop: Stop,
    ) -> None:
        self._settings, self._quick, self._observe, self._stop = settings, quick, observe, stop
        self._running: dict[Connection, BaseProcess] = {}

    def start(self) -> threading.Thread:
        """Look for lanes in a thread of its own."""
        thread = threading.Thread(target=self._keep, name="slow-lanes", daemon=True)
        thread.start()
        return thread

    def _keep(self) -> None:
        lanes = SlowLanes(self._settings.state)
        while not self._stop.is_set():
            there = {process.name for process in self._running.values()}
            for part in {part_of(name, self._settings.slow_processes) for name in lanes.names()}:
                if process_name(part) not in there:
                    self._begin(part)
            if self._running:
                self._receive()
            else:
                self._stop.wait(SEARCH_S)
        self._end()

    def _begin(self, part: int) -> None:
        here, there = get_context("spawn").Pipe(duplex=False)
        arguments = (self._settings, self._quick, part, self._settings.slow_processes, os.getpid(), there)
        process = get_context("spawn").Process(
            target=run_slow_lanes, args=arguments, name=process_name(part), daemon=True
        )
        process.start()
        there.close()
        self._running[here] = process

    def _receive(self) -> None:
        """Take what the processes tell; start one again that died."""
        for ready in wait([*self._running], SEARCH_S):
            assert isinstance(ready, Connection)  # noqa: S101 - `wait` returns what it was given
            try:
                message = ready.recv()
            except (EOFError, OSError):
                self._ended(ready)
            else:
                self._observe_safely(message)

    def _observe_safely(self, message: LaneBatch | LaneLag) -> None:
        """Pass on what a process tells; trouble with it ends neither that nor this thread."""
        try:
            self._observe(message)
        except Exception:  # noqa: BLE001 - the outermost loop of a thread
            supervisor_log.exception("what slow lane %s tells was not taken in", message.lane)

    def _ended(self, here: Connection) -> None:
        process = self._running.pop(here)
        here.close()
        process.join(PATIENCE_S)
        if process.exitcode:
            supervisor_log.warning(
                "a process of the slow lanes ended with status %d; starting it again", process.exitcode
            )
            self._stop.wait(RETRY_S)

    def _end(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.join(PATIENCE_S)
            if process.is_alive():
                process.kill()
