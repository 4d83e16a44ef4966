"""What one line of a list says of an alert: its facts, and where it lies in Kafka."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nightwire.consumers import ReceivedAlert

VOEVENT = "voevent"
"""What stands for a survey where there is none."""
EPOCH = datetime(1858, 11, 17, tzinfo=UTC)
"""Modified Julian date 0."""
UNIX_EPOCH = 40_587.0
"""Modified Julian date of 1970. [d]"""


@dataclass(frozen=True, slots=True)
class Row:
    """One alert or VOEvent; None for what is not known.

    Attributes:
        topic: Where it lies,
        partition: in which partition,
        offset: and at which offset.
        written: When Kafka took it. [s since 1970]
        survey: Its survey; `VOEVENT` for a VOEvent.
        id: Its id in the survey.
        object: Its object, else its solar-system object.
        mjd: When it was seen. [d, UTC]
        ra: [deg, ICRS]
        dec: [deg, ICRS]
        band: Filter.
        magnitude: [AB mag]
        snr: Flux over its error.
        stamps: Names of its stamps.
        source: The topic that it first lay in.
        number: Its place in the order in which this process read.
    """

    topic: str
    partition: int
    offset: int
    written: float
    survey: str
    id: str
    object: str | None
    mjd: float | None
    ra: float | None
    dec: float | None
    band: str | None
    magnitude: float | None
    snr: float | None
    stamps: tuple[str, ...]
    source: str
    number: int = 0

    @property
    def place(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it, with the times as texts."""
        known = {name: getattr(self, name) for name in self.__slots__}
        return {**known, "time": iso(self.mjd), "written": iso(self.written / 86_400 + UNIX_EPOCH)}


@dataclass(frozen=True, slots=True)
class Classified:
    """What a community broker says of an alert.

    Attributes:
        broker: Who.
        classifier: By which of its classifiers, of which version.
        alert: Id of the alert.
        classes: Probability of each class. [0 to 1]
    """

    broker: str
    classifier: str
    alert: str
    classes: dict[str, float]


@lru_cache(10_000)  # each alert is shown often
def iso(mjd: float | None) -> str | None:
    """Return a date as ISO 8601, to the second; None where there is none. [d, UTC]"""
    try:
        return None if mjd is None else f"{EPOCH + timedelta(days=mjd):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError):  # no year that a calendar has
        return None


def to_utc(mjd_tai: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return modified Julian dates on UTC, shape (n,), NaN where *mjd_tai* has no date. [d]"""
    from astropy.time import Time

    tai = np.asarray(mjd_tai, float)
    known = np.isfinite(tai) & (np.abs(tai) < 1e6)
    with warnings.catch_warnings():  # "dubious year": dates past the table of leap seconds
        warnings.simplefilter("ignore")
        utc = Time(np.where(known, tai, 60_000.0), format="mjd", scale="tai").utc.mjd
    return np.where(known, utc, np.nan)


def rows_of(alerts: Sequence[ReceivedAlert]) -> list[Row]:
    """Return the rows of *alerts*, in their order."""
    if not alerts:
        return []
    utc = to_utc([_number(_known(alert, "mjd_tai"), math.nan) for alert in alerts])
    return [
        _row(alert, None if math.isnan(mjd) else float(mjd)) for alert, mjd in zip(alerts, utc, strict=True)
    ]


def _row(alert: ReceivedAlert, mjd: float | None) -> Row:
    event = alert.summary if alert.view is None else None
    if event is not None and event.time is not None:
        mjd = event.time.timestamp() / 86_400 + UNIX_EPOCH
    found = {name: getattr(event, name) if event else _known(alert, name) for name in ("id", "ra", "dec")}
    of_object = None if event else _known(alert, "object_id") or _known(alert, "solar_system_id")
    return Row(
        *alert.position,
        written=alert.timestamp.timestamp(),
        survey=VOEVENT if event else alert.survey or VOEVENT,
        id=str(found["id"]) if found["id"] is not None else alert.place,
        object=None if of_object is None else str(of_object),
        mjd=mjd,
        ra=_number(found["ra"]),
        dec=_number(found["dec"]),
        band=None if event else _text(_known(alert, "band")),
        magnitude=None if event else _number(_known(alert, "magnitude")),
        snr=None if event else _number(_known(alert, "snr")),
        stamps=tuple(alert.stamps),
        source=alert.origin[0],
    )


def _known(alert: ReceivedAlert, name: str) -> Any:
    """Return an attribute of the alert's view; None where a field holds what it must not."""
    try:
        return getattr(alert.view, name, None)
    except (TypeError, ValueError):
        return None


def _number(value: Any, otherwise: Any = None) -> Any:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else otherwise


def _text(value: Any) -> str | None:
    return None if value is None else str(value)[:20]
