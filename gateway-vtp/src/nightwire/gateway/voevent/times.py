"""Time scales, so that no TAI, TT or GPS time is ever written down as UTC."""

import re
import warnings
from datetime import date, datetime, timedelta
from functools import lru_cache

_GPS_BEHIND_TAI = 19.0  # [s], fixed since 1980 (IS-GPS-200)
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?")
SCALES = ("UTC", "TT", "TDB", "TAI", "GPS")


def utc_from_mjd_tai(mjd: float) -> str:
    """Return the UTC of a modified Julian date in TAI, in ISO 8601 with milliseconds."""
    from astropy.time import Time  # takes half a second

    return str(Time(mjd, format="mjd", scale="tai", precision=3).utc.isot)


def utc_from_iso(text: str, scale: str) -> str | None:
    """Return *text*, an ISO 8601 time in *scale* (one of `SCALES`), in UTC.

    None where it cannot be read, or has a zone, or the scale is another.
    """
    text = text.strip().removesuffix("Z").replace(" ", "T")
    if not _ISO.fullmatch(text) or scale not in SCALES:
        return None
    return text if scale == "UTC" else _converted(text, scale)


def load_time_scales() -> None:
    """Load astropy and its leap seconds now rather than with the first event that needs them."""
    _steady_offset(date(2026, 1, 1), "TT")


def _converted(text: str, scale: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
        offset = None if scale == "TDB" else _steady_offset(moment.date(), scale)
        if offset is None:
            return _exactly(text, scale)
    # the thirteenth month, the 25th hour; or a 61st second, which is left to astropy
    except ValueError:
        return _exactly(text, scale)
    return (moment - offset + timedelta(microseconds=500)).isoformat(timespec="milliseconds")


@lru_cache(maxsize=1024)
def _steady_offset(day: date, scale: str) -> timedelta | None:
    """Return *scale* - UTC around *day*; None where a leap second lies near."""
    offsets = {_offset(day + timedelta(days=shift), scale) for shift in (-1, 2)}
    return offsets.pop() if len(offsets) == 1 else None


def _offset(day: date, scale: str) -> timedelta:
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001  (of the scale, not of a zone)
    utc = datetime.fromisoformat(_exactly(midnight.isoformat(), scale) or "")
    return midnight - utc


def _exactly(text: str, scale: str) -> str | None:
    from astropy.time import Time, TimeDelta
    from erfa import ErfaWarning  # type: ignore[import-untyped]

    with warnings.catch_warnings(action="ignore", category=ErfaWarning):  # of years far away
        warnings.filterwarnings("error", ".*after end of day", ErfaWarning)  # no 61st second there
        try:
            if scale == "GPS":
                return str((Time(text, scale="tai") + TimeDelta(_GPS_BEHIND_TAI, format="sec")).utc.isot)
            return str(Time(text, scale=scale.lower()).utc.isot)
        except (ValueError, ErfaWarning):
            return None
