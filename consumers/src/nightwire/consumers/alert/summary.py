"""An alert on one line: its id, object, time, position, band, magnitude, S/N."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

MOST_NAMED = 5
"""Most alerts of an event of a flow that are named: the newest."""


@dataclass(frozen=True)
class Summary:
    """What fits on one line of an alert; None for what is not known.

    Attributes:
        id: The alert's id, of a VOEvent its IVORN, of a flow's own event who says it.
        object: The object's id, or the solar-system object's; of a VOEvent its role.
        time: When it was seen. [UTC]
        ra: Right ascension. [deg, ICRS]
        dec: Declination. [deg, ICRS]
        band: Filter.
        magnitude: [AB]
        snr: Flux over its error.
        says: What a window or a join of a flow says, and of which alerts; empty for alerts.
    """

    id: int | str | None = None
    object: int | str | None = None
    time: datetime | None = None
    ra: float | None = None
    dec: float | None = None
    band: str | None = None
    magnitude: float | None = None
    snr: float | None = None
    says: str = ""

    def texts(self) -> dict[str, str]:
        """Return each column's text, empty for what is not known."""
        said = {"says": self.says} if self.says else {}
        return said | {
            "id": _text(self.id),
            "object": _text(self.object),
            "time (UTC)": "" if self.time is None else f"{self.time:%Y-%m-%d %H:%M:%S}",
            "ra": _number(self.ra, "9.5f"),
            "dec": _number(self.dec, "+9.5f"),
            "band": _text(self.band),
            "mag": _number(self.magnitude, ".2f"),
            "S/N": _number(self.snr, ".1f"),
        }


def summarise(alert: Mapping[str, Any], view: Any) -> Summary:
    """Return the summary of *alert* by its *view*; without one, as the VOEvent that it may be.

    Events that stones of flows make are told by their fields.
    """
    if alert.keys() >= {"flow", "stone", "object"}:
        return _of_flow(alert)
    if view is None:
        return _voevent(alert)
    time = _known(view, "mjd_tai")
    return Summary(
        id=_known(view, "id"),
        object=_known(view, "object_id") or _known(view, "solar_system_id"),
        time=None if time is None else utc(time),
        ra=_known(view, "ra"),
        dec=_known(view, "dec"),
        band=_known(view, "band"),
        magnitude=_known(view, "magnitude"),
        snr=_known(view, "snr"),
    )


def _known(view: Any, name: str) -> Any:
    """Return an attribute of *view*; None where a field holds what its survey does not announce."""
    try:
        return getattr(view, name)
    except (TypeError, ValueError):
        return None


def _voevent(alert: Mapping[str, Any]) -> Summary:
    return Summary(
        id=alert.get("ivorn"),
        object=alert.get("role"),
        time=_parse_time(alert.get("event_time") or alert.get("date")),
        ra=_float(alert.get("ra")),
        dec=_float(alert.get("dec")),
    )


def _of_flow(event: Mapping[str, Any]) -> Summary:
    alerts: Sequence[Mapping[str, Any]] = event.get("causes") or event.get("alerts") or ()
    if "function" in event:
        what, time = f"{event['function']} {event['value']:g} of {event['count']} alerts", event["end"]
    else:
        what = f"{len(alerts)} alerts, {len(event['returns'])} returns"
        time = alerts[-1]["mjd_tai"] if alerts else None
    named = [str(one["alert"]) for one in alerts[-MOST_NAMED:]]
    more = f" and {len(alerts) - MOST_NAMED} more" if len(alerts) > MOST_NAMED else ""
    return Summary(
        id=f"{event['flow']}.{event['stone']}",
        object=event["object"],
        time=None if time is None else utc(time),
        says=f"{what}: {' '.join(reversed(named))}{more}",
    )


def utc(mjd_tai: float) -> datetime | None:
    """Return the UTC of a TAI date, leap seconds taken off; None where there is no such date.

    Args:
        mjd_tai: Modified Julian date. [d, TAI]
    """
    from astropy.time import Time

    if not math.isfinite(mjd_tai):
        return None
    with warnings.catch_warnings():  # "dubious year": dates past the table of leap seconds
        warnings.simplefilter("ignore")
        try:
            time = Time(mjd_tai, format="mjd", scale="tai").utc.to_datetime(leap_second_strict="silent")
        except ValueError:  # a year that datetime cannot hold
            return None
    return time.replace(tzinfo=UTC) if isinstance(time, datetime) else None


def _parse_time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _number(value: float | None, form: str) -> str:
    return "" if value is None or not math.isfinite(value) else format(value, form)
