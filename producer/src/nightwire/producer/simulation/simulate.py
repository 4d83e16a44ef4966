"""Visit after visit of the simulated survey goes into Kafka, by a schedule of open loop."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count, repeat
from typing import Protocol

from nightwire.core.cli import Meter
from nightwire.core.runtime import Lateness, on_time
from nightwire.producer.simulation.pool import POOL, AlertSource
from nightwire.producer.simulation.sky import visit_id
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.writing.visit_writer import EncodedAlert, VisitWriter
from nightwire.producer.writing.writer import AlertWriter

log = logging.getLogger("nightwire.producer")

SHORT_WAIT = 0.002
"""An alert that is due sooner is waited for, and none is made meanwhile. [s]"""
PATCHED_AHEAD = 100
"""Patched alerts made ahead: they cost little time, but as much memory as others."""
MAX_POLL = 0.2
"""Longest wait before `stop` is asked again. [s]"""


class StopSignal(Protocol):
    """What a simulation needs of a `nightwire.core.runtime.Stop`."""

    def is_set(self) -> bool:
        """Return whether it is time to leave."""

    def wait(self, timeout: float) -> bool:
        """Wait at most *timeout* [s]; return whether it is time to leave."""


class VisitNumbers(Protocol):
    """What a simulation needs of a `VisitIdAllocator`."""

    def claim(self, wanted: int, opened: datetime) -> VisitCounts:
        """Open visit *wanted*, or the first free number above, and return its counts."""


@dataclass(frozen=True)
class Clocks:
    """A steady clock [s], and the time, UTC."""

    steady: Callable[[], float]
    utc: Callable[[], datetime]


@dataclass(frozen=True)
class Plan:
    """What to play.

    Attributes:
        visits: How many; 0 goes on for ever.
        alerts: How many each visit has.
        interval: From the opening of a visit to the next; 0 = when all alerts have left. [s]
        seed: Decides everything but the time.
        pace: Alerts a second of a visit; 0 = all of them at once.
        ready: From the opening of a visit until its alerts are due. [s]
        pool: Visits of more alerts than this are patched from so many.
    """

    visits: int
    alerts: int
    interval: float
    seed: int
    pace: float = 0.0
    ready: float = 0.0
    pool: int = POOL

    def __post_init__(self) -> None:
        lasting = self.alerts / self.pace if self.pace else 0.0
        if self.visits != 1 and self.interval and lasting > self.interval * 1.001:
            raise ValueError(
                f"{self.alerts:,} alerts at {self.pace:g} a second take {lasting:g} s, "
                f"longer than the interval of {self.interval:g} s"
            )

    @property
    def ahead(self) -> int:
        """Most alerts that are made ahead."""
        return self.pool if self.alerts <= self.pool else PATCHED_AHEAD

    def dues(self, first: float) -> Iterable[float]:
        """Return when each alert of a visit is due, the first of them at *first*. [s]"""
        if not self.pace:
            return repeat(first, self.alerts)
        return (first + number / self.pace for number in range(self.alerts))


@dataclass(frozen=True)
class PlayedVisit:
    """A visit that was played: its counts, and the lateness of its alerts."""

    counts: VisitCounts
    lateness: Lateness = field(default_factory=Lateness)


class Prefetched(Iterator[EncodedAlert]):
    """Alerts that can be made ahead of time.

    Args:
        alerts: Makes them.
        limit: Most that are made ahead.
    """

    def __init__(self, alerts: Iterator[EncodedAlert], limit: int) -> None:
        self._alerts, self._limit = alerts, limit
        self._made: deque[EncodedAlert] = deque()

    def make_one(self) -> bool:
        """Make one more; return whether there was one to make, and room for it."""
        if len(self._made) >= self._limit:
            return False
        made = next(self._alerts, None)
        if made is not None:
            self._made.append(made)
        return made is not None

    def __next__(self) -> EncodedAlert:
        """Return the next alert, made now where it is not yet."""
        return self._made.popleft() if self._made else next(self._alerts)


class Simulation:
    """Plays the visits of a plan, one after the other.

    Args:
        plan: What to play.
        source: Makes the alerts.
        writer: Writes them.
        visit_numbers: Gives visits their numbers.
        clocks: Give the time.
        stop: Tells when to leave.
    """

    def __init__(
        self,
        plan: Plan,
        source: AlertSource,
        writer: AlertWriter,
        visit_numbers: VisitNumbers,
        clocks: Clocks,
        stop: StopSignal,
    ) -> None:
        self._plan, self._source, self._writer = plan, source, writer
        self._visit_numbers, self._clocks, self._stop = visit_numbers, clocks, stop
        self._last = 0

    def play(self, meter: Meter, *, observe: Callable[[float], object]) -> Iterator[PlayedVisit]:
        """Write the visits, and yield each when it is closed; a stopped one has some of its alerts.

        The next visit is made while the clock waits for it.  The schedule begins when the alerts of
        the first are made.

        Args:
            meter: Counts the alerts.
            observe: Takes by how much each alert was late. [s]

        Raises:
            DeliveryError: Kafka did not take an alert.
        """
        plan, now = self._plan, self._clocks.steady
        opening = now()
        for index in count() if not plan.visits else range(plan.visits):
            number, alerts = self._begin(opening)
            if index == 0:
                while not self._stop.is_set() and alerts.make_one():
                    pass
                opening = max(opening, now() - plan.ready)
            if not self._await(opening, alerts):
                return
            played = PlayedVisit(self._visit_numbers.claim(number, self._utc(opening)))
            self._last = played.counts.visit
            if self._last != number:
                self._source.renumber(self._last)
                alerts = Prefetched(self._source.alerts(), self._plan.ahead)
            self._send(played, opening + plan.ready, alerts, meter, observe)
            yield played
            opening = opening + plan.interval if plan.interval else now()

    def _begin(self, opening: float) -> tuple[int, Prefetched]:
        """Begin a visit at *opening* [s]; return its wanted number, and its alerts, yet unmade."""
        moment = self._utc(opening)
        number = max(visit_id(moment), self._last + 1)
        self._source.open(moment, number)
        return number, Prefetched(self._source.alerts(), self._plan.ahead)

    def _utc(self, moment: float) -> datetime:
        return self._clocks.utc() + timedelta(seconds=moment - self._clocks.steady())

    def _await(self, opening: float, alerts: Prefetched) -> bool:
        """Make alerts until the visit opens; return False when it is time to leave."""
        opened = on_time([opening], clock=self._clocks.steady, idle=lambda left: self._idle(left, alerts))
        return next(opened, None) is not None and not self._stop.is_set()

    def _send(
        self,
        played: PlayedVisit,
        first: float,
        alerts: Prefetched,
        meter: Meter,
        observe: Callable[[float], object],
    ) -> None:
        visit = VisitWriter(self._writer, played.counts)
        dues = on_time(
            self._plan.dues(first), clock=self._clocks.steady, idle=lambda left: self._idle(left, alerts)
        )
        for (due, _late), alert in zip(dues, alerts, strict=False):
            if self._stop.is_set():
                break
            visit.send(alert)
            late = self._clocks.steady() - due
            played.lateness.note(late)
            observe(late)
            meter.advance()
        self._writer.close_visit(played.counts)

    def _idle(self, left: float, alerts: Prefetched) -> bool:
        """Make an alert, or receive acknowledgements; return whether it is time to leave."""
        if left < SHORT_WAIT:
            return self._stop.wait(left)
        if not alerts.make_one():
            self._writer.records.serve(min(left - SHORT_WAIT / 2, MAX_POLL))
        return self._stop.is_set()
