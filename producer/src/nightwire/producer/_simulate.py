"""Play visit after visit of the simulated survey into Kafka."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from nightwire.producer._alerts import Visits
from nightwire.producer._ledger import Ledger
from nightwire.producer._sky import Sky, VisitLog, visit_id
from nightwire.producer._writer import AlertWriter
from nightwire.schemas import EncodeError

log = logging.getLogger("nightwire.producer")

Clock = Callable[[], datetime]


class Stop(Protocol):
    """What a simulation needs to be told to leave."""

    def is_set(self) -> bool:
        """Return whether it is time to leave."""

    def wait(self, timeout: float) -> bool:
        """Wait at most *timeout* [s]; return whether it is time to leave."""


class Watcher(Protocol):
    """Who is told how it goes."""

    def advance(self, count: int = 1) -> None:
        """Count alerts that were offered."""


@dataclass(frozen=True)
class Plan:
    """What to play.

    Attributes:
        visits: How many; 0 goes on for ever.
        alerts: In each visit.
        interval: From the opening of a visit to that of the next. [s]
        seed: Decides everything but the time.
    """

    visits: int
    alerts: int
    interval: float
    seed: int


def next_visit(moment: datetime, last: int) -> int:
    """Return the id of a visit at *moment*, UTC, that is above *last* (an id is used once)."""
    return max(visit_id(moment), last + 1)


def simulate(
    plan: Plan, writer: AlertWriter, *, clock: Clock, stop: Stop, meter: Watcher, last_visit: int = 0
) -> Iterator[Ledger]:
    """Write the visits of *plan*, and yield the ledger of each when it is closed.

    A visit that is stopped halfway is closed with what it has.

    Args:
        plan: What to play.
        writer: Where to.
        clock: Gives the time, UTC.
        stop: Tells when to leave.
        meter: Is told of each alert.
        last_visit: Highest visit id in use.

    Raises:
        DeliveryError: Kafka did not take an alert.
    """
    visits = VisitLog(plan.seed, clock())
    field = Visits(Sky(plan.seed, plan.alerts), visits)
    played = 0
    while not stop.is_set() and (not plan.visits or played < plan.visits):
        opened = clock()
        last_visit = next_visit(opened, last_visit)
        visits.open(opened, last_visit)
        yield _play(field, writer, last_visit, stop, meter)
        played += 1
        if played != plan.visits:
            stop.wait(max(0.0, plan.interval - (clock() - opened).total_seconds()))


def _play(field: Visits, writer: AlertWriter, number: int, stop: Stop, meter: Watcher) -> Ledger:
    with writer.visit(number) as visit:
        for alert in field.alerts():
            if stop.is_set():
                break
            try:
                visit.write(alert)
            except EncodeError as error:
                log.warning("refused: %s", error)
            meter.advance()
    return visit.ledger


def summary(ledgers: list[Ledger], survey: str) -> dict[str, Any]:
    """Return the counts of *ledgers*, for people and programs."""
    return {
        "survey": survey,
        "in": sum(ledger.offered for ledger in ledgers),
        "acknowledged": sum(ledger.acknowledged for ledger in ledgers),
        "refused": sum(sum(ledger.refused.values()) + ledger.dead_lettered for ledger in ledgers),
        "visits": [
            {
                "visit": ledger.visit,
                "in": ledger.offered,
                "acknowledged": ledger.acknowledged,
                "refused": sum(ledger.refused.values()) + ledger.dead_lettered,
            }
            for ledger in ledgers
        ],
    }
