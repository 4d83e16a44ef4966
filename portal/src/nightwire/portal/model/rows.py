"""Rows: an alert's facts as lists show them, with its topic, partition and offset."""

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
from nightwire.schemas.topics import VOEVENTS

VOEVENT = "voevent"
"""Survey of rows of VOEvents."""
EPOCH = datetime(1858, 11, 17, tzinfo=UTC)
"""Modified Julian date 0."""
UNIX_EPOCH = 40_587.0
"""Modified Julian date of 1970. [d]"""
RecordId = tuple[str, int, int]
"""Topic, partition, offset."""


@dataclass(frozen=True, slots=True)
class Row:
    """One alert or VOEvent; None for what is not known.

    Attributes:
        topic: Of its record in Kafka.
        partition: Likewise.
        offset: Likewise.
        written: Kafka's timestamp. [s since 1970]
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
        source: The topic that it was first written to.
        number: Its number in the order of reading by this process, from 1 on; each filter's topic
            is numbered by itself, so that numbers tell nobody how much passes another's filter.
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
    def record_id(self) -> RecordId:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset

    def as_json(self) -> dict[str, Any]:
        """Return the row as JSON, its times as ISO 8601."""
        known = {name: getattr(self, name) for name in self.__slots__}
        return {**known, "time": iso(self.mjd), "written": iso(self.written / 86_400 + UNIX_EPOCH)}


@dataclass(frozen=True, slots=True)
class Classification:
    """A community broker's classification of an alert.

    Attributes:
        broker: The broker's name.
        classifier: Name and version of its classifier.
        alert: Id of the alert.
        classes: Probability of each class. [0 to 1]
    """

    broker: str
    classifier: str
    alert: str
    classes: dict[str, float]


def is_unfiltered(topic: str) -> bool:
    """Whether *topic* holds all of a survey's alerts, or the VOEvents."""
    return topic == VOEVENTS or topic.startswith("alerts.")


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
    utc = to_utc([_number(_attribute(alert, "mjd_tai"), math.nan) for alert in alerts])
    return [
        _row(alert, None if math.isnan(mjd) else float(mjd)) for alert, mjd in zip(alerts, utc, strict=True)
    ]


def _row(alert: ReceivedAlert, mjd: float | None) -> Row:
    event = alert.summary if alert.view is None else None
    if event is not None and event.time is not None:
        mjd = event.time.timestamp() / 86_400 + UNIX_EPOCH
    found = {name: getattr(event, name) if event else _attribute(alert, name) for name in ("id", "ra", "dec")}
    of_object = None if event else _attribute(alert, "object_id") or _attribute(alert, "solar_system_id")
    return Row(
        *alert.position,
        written=alert.timestamp.timestamp(),
        survey=VOEVENT if event else alert.survey or VOEVENT,
        id=str(found["id"]) if found["id"] is not None else alert.place,
        object=None if of_object is None else str(of_object),
        mjd=mjd,
        ra=_number(found["ra"]),
        dec=_number(found["dec"]),
        band=None if event else _text(_attribute(alert, "band")),
        magnitude=None if event else _number(_attribute(alert, "magnitude")),
        snr=None if event else _number(_attribute(alert, "snr")),
        stamps=tuple(alert.stamps),
        source=alert.origin[0],
    )


def _attribute(alert: ReceivedAlert, name: str) -> Any:
    """Return an attribute of the alert's view; None where a field holds what it must not."""
    try:
        return getattr(alert.view, name, None)
    except (TypeError, ValueError):
        return None


def _number(value: Any, default: Any = None) -> Any:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else default


def _text(value: Any) -> str | None:
    return None if value is None else str(value)[:20]
