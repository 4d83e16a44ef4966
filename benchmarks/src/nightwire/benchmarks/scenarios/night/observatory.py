"""Sends visits by a schedule: alerts by `AlertWriter`, or ready-made bytes by librdkafka."""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain

from confluent_kafka import Message as Sent
from confluent_kafka import Producer

from nightwire.benchmarks.environment.alert_pool import SEED, START, Alert, ReadyMessage, patch
from nightwire.benchmarks.scenarios.night.schedule import Schedule
from nightwire.benchmarks.workers.alerts.due_times import LEAD, DueTimes, paced
from nightwire.benchmarks.workers.alerts.feed import OnDelivered, RawProducer, alert_writer
from nightwire.producer import VisitLog

FIRST_VISIT = 2026_0120_00000


class Observatory:
    """Takes exposures, and writes their alerts; visits' numbers and alerts' ids are unique."""

    def __init__(self, pool: Sequence[Alert]) -> None:
        self._pool = pool
        self._log = VisitLog(SEED, START)
        self._visits = self._alerts = 0
        self.behind = 0.0

    def observe(self, bootstrap: str, topic: str, schedule: Schedule) -> dict[str, float]:
        """Write all visits of *schedule*; return when each alert, by id, was due. [s]"""
        writer, codec, client = alert_writer(bootstrap, topic)
        codec.encode(self._pool[0])
        due_of: dict[str, float] = {}
        start = time.monotonic() + LEAD
        for turn in range(schedule.visits):
            dues = self._due(schedule.dues(start, turn), client)
            due = next(dues)
            exposure = self._log.open(utc_of(schedule.shutter(start, turn)), FIRST_VISIT + self._visits)
            self._visits += 1
            with writer.visit(exposure.id) as visit:
                for moment in chain([due], dues):
                    alert = exposed(self._pool, self._alerts, exposure.id, exposure.mjd_tai)
                    self._alerts += 1
                    visit.write(alert)
                    due_of[str(alert["diaSourceId"])] = moment
        return due_of

    def send(
        self, bootstrap: str, topic: str, schedule: Schedule, ready: Sequence[ReadyMessage]
    ) -> tuple[DueTimes, DueTimes]:
        """Send bytes by *schedule*; return when each was due, and its shutter's time."""
        raw, dues, shutters = RawProducer(bootstrap, topic), DueTimes(), DueTimes()
        start, number = time.monotonic() + LEAD, 0
        for turn in range(schedule.visits):
            shutter = shutters.of(schedule.shutter(start, turn))
            for moment in self._due(schedule.dues(start, turn), raw.client):
                raw.send(ready[number % len(ready)], _both(dues.of(moment), shutter))
                number += 1
        raw.flush()
        return dues, shutters

    def _due(self, dues: Iterable[float], client: Producer) -> Iterator[float]:
        """Yield each moment when it has come, and note by how much it was missed."""
        for due, late in paced(dues, client):
            self.behind = max(self.behind, late)
            yield due


def exposed(pool: Sequence[Alert], number: int, visit: int, mjd_tai: float) -> Alert:
    """Return alert *number*, seen in *visit* at *mjd_tai* [d]; the rest is the pool's."""
    alert = patch(pool[number % len(pool)], number, visit)
    alert["diaSource"]["midpointMjdTai"] = mjd_tai
    return alert


def utc_of(moment: float) -> datetime:
    """Return a moment of the monotonic clock [s] as UTC."""
    return datetime.now(UTC) + timedelta(seconds=moment - time.monotonic())


def _both(one: OnDelivered, other: OnDelivered) -> OnDelivered:
    def both(message: Sent) -> None:
        one(message)
        other(message)

    return both
