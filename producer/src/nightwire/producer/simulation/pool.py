"""The encoded alerts of a simulated visit: drawn one by one, or patched from a pool."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from nightwire.producer.simulation.alerts import Alert, Visits
from nightwire.producer.simulation.sky import Sky, VisitLog, visit_id
from nightwire.producer.simulation.sources import PROCESSING, SLOTS
from nightwire.producer.simulation.template import Template
from nightwire.producer.writing.visit_writer import EncodedAlert

POOL = 2_000
"""Most distinct alerts, which take about 250 MB; a larger visit is patched from so many."""
STEP = 2e-4
"""Step from an object of the pool to its next copy, north and east. [deg]"""
VALUE_PATHS = {
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
"""The values that are new in each copy of an alert, and the paths at which they lie."""
FIRST_SEEN = "diaObject.firstDiaSourceMjdTai"

Encode = Callable[[Alert], EncodedAlert]


class AlertSource(Protocol):
    """What a simulation plays."""

    def open(self, moment: datetime, number: int) -> None:
        """Open visit *number* at *moment*, UTC."""

    def renumber(self, number: int) -> None:
        """Give the visit that was just opened another number."""

    def alerts(self) -> Iterator[EncodedAlert]:
        """Yield the alerts of the visit."""


class DrawnAlerts:
    """Alerts that are drawn one by one; objects have a history that grows.

    Args:
        sky: The field and its objects.
        log: The visits so far.
        encode: Encodes an alert.
    """

    def __init__(self, sky: Sky, log: VisitLog, encode: Encode) -> None:
        self._log, self._encode = log, encode
        self._visits = Visits(sky, log)

    def open(self, moment: datetime, number: int) -> None:
        """Open visit *number* at *moment*, UTC."""
        self._log.open(moment, number)

    def renumber(self, number: int) -> None:
        """Give the visit that was just opened another number."""
        self._log.renumber(number)

    def alerts(self) -> Iterator[EncodedAlert]:
        """Yield the alerts of the visit."""
        return map(self._encode, self._visits.alerts())


@dataclass(frozen=True)
class PoolMember:
    """An alert of the pool, and those of its values from which copies differ."""

    template: Template
    object: int
    moving: int
    ra: float
    dec: float


class PatchedAlerts:
    """Copies of a pool's alerts, each with its own id, time, object and position.

    Fluxes, histories, ephemerides and stamps repeat, within a visit and from visit to visit.

    Args:
        members: The alerts of the pool.
        log: The visits so far.
        count: How many alerts a visit has.
    """

    def __init__(self, members: list[PoolMember], log: VisitLog, count: int) -> None:
        self._members, self._log, self._count = members, log, count

    def open(self, moment: datetime, number: int) -> None:
        """Open visit *number* at *moment*, UTC."""
        self._log.open(moment, number)

    def renumber(self, number: int) -> None:
        """Give the visit that was just opened another number."""
        self._log.renumber(number)

    def alerts(self) -> Iterator[EncodedAlert]:
        """Yield the alerts of the visit."""
        visit, size = self._log.present, len(self._members)
        for number in range(self._count):
            copy, index = divmod(number, size)
            yield self._copy(self._members[index], copy, visit.id * SLOTS + number + 1, visit.mjd_tai)

    def _copy(self, member: PoolMember, copy: int, name: int, time: float) -> EncodedAlert:
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
        return EncodedAlert(str(owner).encode(), member.template.filled(values))


def make_pool(seed: int, size: int, log: VisitLog, moment: datetime, encode: Encode) -> Iterator[PoolMember]:
    """Yield *size* distinct alerts of *seed*, seen at *moment* (UTC) after the visits of *log*."""
    log.open(moment, visit_id(moment))
    for alert in Visits(Sky(seed, size), log).alerts():
        yield pool_member(alert, encode)


def pool_member(alert: Alert, encode: Encode) -> PoolMember:
    """Return *alert* as a member of a pool."""
    source: dict[str, Any] = alert["diaSource"]
    return PoolMember(
        Template(lambda one: encode(dict(one)).value, alert, value_paths(alert)),
        source["diaObjectId"] or 0,
        source["ssObjectId"] or 0,
        source["ra"],
        source["dec"],
    )


def value_paths(alert: Alert) -> dict[str, tuple[str, ...]]:
    """Return the paths of values that are new in a copy of *alert*.

    An object without a history was first seen now, so that its copies get that time too.
    """
    if alert["prvDiaSources"] is not None:
        return dict(VALUE_PATHS)
    return VALUE_PATHS | {"time": (*VALUE_PATHS["time"], FIRST_SEEN)}
