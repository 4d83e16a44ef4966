"""Play visit after visit of the simulated survey into Kafka, by a schedule that waits for nobody."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count, repeat
from typing import Protocol

from nightwire.core.runtime import Lateness, on_time
from nightwire.producer.simulation.pool import POOL, Field
from nightwire.producer.simulation.sky import visit_id
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.writing.visit_writer import Encoded, VisitWriter
from nightwire.producer.writing.writer import AlertWriter

log = logging.getLogger("nightwire.producer")

SOON = 0.002
"""What is due within this [s] is only waited for."""
AT_HAND = 100
"""Copies made ahead: they cost little, but as much memory as others."""
STATUS_INTERVAL = 0.2
"""Longest wait without a look at whether to stop. [s]"""


class Stop(Protocol):
    """What a simulation needs to be told to leave."""

    def is_set(self) -> bool:
        """Return whether it is time to leave."""

    def wait(self, timeout: float) -> bool:
        """Wait at most *timeout* [s]; return whether it is time to leave."""


class Listener(Protocol):
    """Who is told how it goes."""

    def advance(self, count: int = 1) -> None:
        """Count alerts that were offered."""


class Opens(Protocol):
    """Who gives visits their numbers: `Claims`."""

    def claim(self, wanted: int, opened: datetime) -> VisitCounts:
        """Open visit *wanted*, or the first above that nobody has, and return its ledger."""


@dataclass(frozen=True)
class Clocks:
    """The present, twice: a steady clock [s], and the time, UTC."""

    steady: Callable[[], float]
    utc: Callable[[], datetime]


@dataclass(frozen=True)
class Plan:
    """What to play.

    Attributes:
        visits: How many; 0 goes on for ever.
        alerts: In each visit.
        interval: From the opening of a visit to that of the next; 0 = when the one before has left. [s]
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
        if (
            self.pace
            and self.visits != 1
            and self.interval
            and self.alerts / self.pace > self.interval * 1.001
        ):
            raise ValueError(
                f"{self.alerts:,} alerts at {self.pace:g} a second take {self.alerts / self.pace:g} s, "
                f"longer than the interval of {self.interval:g} s"
            )

    @property
    def ahead(self) -> int:
        """How many alerts to make ahead, at most."""
        return self.pool if self.alerts <= self.pool else AT_HAND

    def dues(self, first: float) -> Iterable[float]:
        """Return when each alert of a visit is due whose first is due at *first*. [s]"""
        if not self.pace:
            return repeat(first, self.alerts)
        return (first + number / self.pace for number in range(self.alerts))


@dataclass(frozen=True)
class Played:
    """A visit that was played: its ledger, and by how much its alerts were late."""

    ledger: VisitCounts
    lateness: Lateness = field(default_factory=Lateness)


class Prefetched(Iterator[Encoded]):
    """Alerts, made ahead of time where there is time.

    Args:
        alerts: That are to be made.
        limit: How many to make ahead, at most.
    """

    def __init__(self, alerts: Iterator[Encoded], limit: int) -> None:
        self._alerts, self._limit = alerts, limit
        self._made: deque[Encoded] = deque()

    def make_one(self) -> bool:
        """Make one more; return whether there was one to make, and room for it."""
        if len(self._made) >= self._limit:
            return False
        made = next(self._alerts, None)
        if made is not None:
            self._made.append(made)
        return made is not None

    def __next__(self) -> Encoded:
        """Return the next alert, made now where it is not yet."""
        return self._made.popleft() if self._made else next(self._alerts)


class Simulation:
    """Visits of a plan, one after the other.

    Args:
        plan: What to play.
        field: Makes the alerts.
        writer: Where to.
        opens: Gives visits their numbers.
        clocks: The present.
        stop: Tells when to leave.
    """

    def __init__(
        self, plan: Plan, field: Field, writer: AlertWriter, opens: Opens, clocks: Clocks, stop: Stop
    ) -> None:
        self._plan, self._field, self._writer, self._opens = plan, field, writer, opens
        self._clocks, self._stop = clocks, stop
        self._last = 0

    def play(self, meter: Listener, *, observe: Callable[[float], object]) -> Iterator[Played]:
        """Write the visits, and yield each when it is closed; one that is stopped halfway has what it has.

        The next visit is made while the clock waits for it.  The schedule begins when the first is made.

        Args:
            meter: Is told of each alert.
            observe: Is told by how much each alert was late. [s]

        Raises:
            DeliveryError: Kafka did not take an alert.
        """
        plan, now = self._plan, self._clocks.steady
        opening = now()
        for turn in count() if not plan.visits else range(plan.visits):
            number, alerts = self._begun(opening)
            if turn == 0:
                while not self._stop.is_set() and alerts.make_one():
                    pass
                opening = max(opening, now() - plan.ready)
            if not self._await(opening, alerts):
                return
            played = Played(self._opens.claim(number, self._utc(opening)))
            self._last = played.ledger.visit
            if self._last != number:
                self._field.renumber(self._last)
                alerts = Prefetched(self._field.alerts(), self._plan.ahead)
            self._send(played, opening + plan.ready, alerts, meter, observe)
            yield played
            opening = opening + plan.interval if plan.interval else now()

    def _begun(self, opening: float) -> tuple[int, Prefetched]:
        """Return the number that a visit opened then [s] should have, and its alerts, yet to be made."""
        moment = self._utc(opening)
        number = max(visit_id(moment), self._last + 1)
        self._field.open(moment, number)
        return number, Prefetched(self._field.alerts(), self._plan.ahead)

    def _utc(self, moment: float) -> datetime:
        return self._clocks.utc() + timedelta(seconds=moment - self._clocks.steady())

    def _await(self, opening: float, alerts: Prefetched) -> bool:
        """Make alerts until the visit opens; return False when it is time to leave."""
        opened = on_time([opening], clock=self._clocks.steady, idle=lambda left: self._idle(left, alerts))
        return next(opened, None) is not None and not self._stop.is_set()

    def _send(
        self,
        played: Played,
        first: float,
        alerts: Prefetched,
        meter: Listener,
        observe: Callable[[float], object],
    ) -> None:
        visit = VisitWriter(self._writer, played.ledger)
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
        self._writer.close_visit(played.ledger)

    def _idle(self, left: float, alerts: Prefetched) -> bool:
        """Make an alert, or take in acknowledgements; return whether it is time to leave."""
        if left < SOON:
            return self._stop.wait(left)
        if not alerts.make_one():
            self._writer.records.serve(min(left - SOON / 2, STATUS_INTERVAL))
        return self._stop.is_set()
