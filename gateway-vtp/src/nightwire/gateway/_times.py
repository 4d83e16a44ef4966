"""Time scales, so that no TAI, TT or GPS time is ever written down as UTC."""

import re

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


def _converted(text: str, scale: str) -> str | None:
    from astropy.time import Time, TimeDelta

    try:
        if scale == "GPS":
            return str((Time(text, scale="tai") + TimeDelta(_GPS_BEHIND_TAI, format="sec")).utc.isot)
        return str(Time(text, scale=scale.lower()).utc.isot)
    except ValueError:  # the thirteenth month, the 25th hour
        return None
