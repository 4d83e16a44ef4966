"""The alerts of a simulated visit as they go into Kafka: drawn one by one, or patched from a pool."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from nightwire.producer.simulation.alerts import Alert, Visits
from nightwire.producer.simulation.sky import Sky, VisitLog, visit_id
from nightwire.producer.simulation.sources import PROCESSING, SLOTS
from nightwire.producer.simulation.template import Template
from nightwire.producer.writing.visit_writer import Encoded

POOL = 2_000
"""Distinct alerts, at most; a visit of more is patched from so many.  They take about 250 MB."""
STEP = 2e-4
"""From the place of an object of the pool to that of its next copy, north and east. [deg]"""
PLACES = {
    "id": ("diaSourceId", "diaSource.diaSourceId", "ssSource.diaSourceId"),
    "visit": ("diaSource.visit",),
    "object": (
        *("diaSource.diaObjectId", "diaObject.diaObjectId"),
        *("prvDiaSources.diaObjectId", "prvDiaForcedSources.diaObjectId"),
    ),
    "moving": ("diaSource.ssObjectId", "ssSource.ssObjectId"),
    "time": ("diaSource.midpointMjdTai", "diaObject.lastDiaSourceMjdTai"),
    "processed": ("diaSource.timeProcessedMjdTai", "diaObject.validityStartMjdTai"),
    "ra": ("diaSource.ra", "diaObject.ra"),
    "dec": ("diaSource.dec", "diaObject.dec"),
}
"""What is new in each copy of an alert of the pool, and where it lies."""
FIRST_SEEN = "diaObject.firstDiaSourceMjdTai"

Encode = Callable[[Alert], Encoded]


class Field(Protocol):
    """What a simulation plays."""

    def open(self, moment: datetime, number: int) -> None:
        """Begin visit *number* at *moment*, UTC."""

    def renumber(self, number: int) -> None:
        """Give the visit that was just begun another number."""

    def alerts(self) -> Iterator[Encoded]:
        """Yield the alerts of the visit."""


class Drawn:
    """Each alert drawn for itself; objects have a history that grows.

    Args:
        sky: Who is there.
        log: The visits so far.
        encode: Gives key and value of an alert.
    """

    def __init__(self, sky: Sky, log: VisitLog, encode: Encode) -> None:
        self._log, self._encode = log, encode
        self._field = Visits(sky, log)

    def open(self, moment: datetime, number: int) -> None:
        """Begin visit *number* at *moment*, UTC."""
        self._log.open(moment, number)

    def renumber(self, number: int) -> None:
        """Give the visit that was just begun another number."""
        self._log.renumber(number)

    def alerts(self) -> Iterator[Encoded]:
        """Yield the alerts of the visit."""
        return map(self._encode, self._field.alerts())


@dataclass(frozen=True)
class Member:
    """An alert of the pool, and the values that its copies depart from."""

    template: Template
    object: int
    moving: int
    ra: float
    dec: float


class Patched:
    """More alerts than the pool has: its copies, each with its own id, time, object and position.

    Fluxes, histories, ephemerides and stamps repeat, within a visit and from visit to visit.

    Args:
        members: The pool.
        log: The visits so far.
        count: Alerts in a visit.
    """

    def __init__(self, members: list[Member], log: VisitLog, count: int) -> None:
        self._members, self._log, self._count = members, log, count

    def open(self, moment: datetime, number: int) -> None:
        """Begin visit *number* at *moment*, UTC."""
        self._log.open(moment, number)

    def renumber(self, number: int) -> None:
        """Give the visit that was just begun another number."""
        self._log.renumber(number)

    def alerts(self) -> Iterator[Encoded]:
        """Yield the alerts of the visit."""
        visit, size = self._log.present, len(self._members)
        for number in range(self._count):
            copy, index = divmod(number, size)
            yield self._copy(self._members[index], copy, visit.id * SLOTS + number + 1, visit.mjd_tai)

    def _copy(self, member: Member, copy: int, name: int, time: float) -> Encoded:
        values = {
            "id": name,
            "visit": name // SLOTS,
            "object": member.object + copy * len(self._members),
            "moving": member.moving + copy,
            "time": time,
            "processed": time + PROCESSING,
            "ra": (member.ra + copy * STEP) % 360.0,
            "dec": member.dec + copy * STEP,
        }
        owner = values["object"] if member.object else values["moving"] if member.moving else name
        return Encoded(str(owner).encode(), member.template.filled(values))


def make_pool(seed: int, size: int, log: VisitLog, moment: datetime, encode: Encode) -> Iterator[Member]:
    """Yield *size* distinct alerts of *seed*, seen at *moment* (UTC) after the visits of *log*."""
    log.open(moment, visit_id(moment))
    for alert in Visits(Sky(seed, size), log).alerts():
        yield member(alert, encode)


def member(alert: Alert, encode: Encode) -> Member:
    """Return *alert* as one of a pool."""
    source: dict[str, Any] = alert["diaSource"]
    return Member(
        Template(lambda one: encode(dict(one)).value, alert, places(alert)),
        source["diaObjectId"] or 0,
        source["ssObjectId"] or 0,
        source["ra"],
        source["dec"],
    )


def places(alert: Alert) -> dict[str, tuple[str, ...]]:
    """Return where the values lie that are new in a copy of *alert*; of a new object, when it was new too."""
    if alert["prvDiaSources"] is not None:
        return dict(PLACES)
    return PLACES | {"time": (*PLACES["time"], FIRST_SEEN)}
