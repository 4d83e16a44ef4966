"""The search box's text, parsed: a position in any usual notation, or a name."""

import re
from dataclasses import dataclass

DEGREES = re.compile(r"([+-]?\d+(?:\.\d*)?)\s*[°d]?[\s,;]+([+-]?\d+(?:\.\d*)?)\s*[°d]?")
"""Two numbers: degrees."""
COMPACT = re.compile(r"J?(\d\d)(\d\d)(\d\d(?:\.\d*)?)([+-]\d\d)(\d\d)(\d\d(?:\.\d*)?)")
"""``J123456.7+012345``, as catalogues name objects."""
SEXAGESIMAL = re.compile(r"[+-]?\d[\d\s.:,;+\-hmsd°'\"′″−]*")
"""Hours, minutes, seconds, and degrees."""
RADIUS = re.compile(
    r"\br(?:adius)?\s*=\s*(\d+(?:\.\d*)?)\s*(\"|″|arcsec|'|′|arcmin|d|°|deg)?\s*$", re.IGNORECASE
)
SCALES = {'"': 3600.0, "″": 3600.0, "arcsec": 3600.0, "'": 60.0, "′": 60.0, "arcmin": 60.0}
"""So many of a unit are a degree."""


@dataclass(frozen=True)
class Position:
    """A position on the sky. [deg, ICRS]"""

    ra: float
    dec: float


@dataclass(frozen=True)
class SearchQuery:
    """A parsed search.

    Attributes:
        text: The search box's text, without the radius.
        position: The position that the text is; None for a name.
        radius: Around it; None where the text has none. [deg]
    """

    text: str
    position: Position | None
    radius: float | None


def parse_query(text: str) -> SearchQuery:
    """Parse *text*; ``r=30"`` at its end is a radius, in arcsec without a unit."""
    text, radius = text.strip().replace("−", "-"), None
    if found := RADIUS.search(text):
        radius = float(found[1]) / SCALES.get((found[2] or '"').lower(), 1.0)
        text = text[: found.start()].rstrip(" ,;")
    return SearchQuery(text, position_of(text), radius)


def position_of(text: str) -> Position | None:
    """Parse *text* as a position; None where it is none.

    Two numbers are degrees; with colons, letters or six numbers the first is hours.
    """
    if found := DEGREES.fullmatch(text):
        return _valid(float(found[1]), float(found[2]))
    if found := COMPACT.fullmatch(text.replace(" ", "")):
        text = "{}:{}:{} {}:{}:{}".format(*found.groups())
    if not SEXAGESIMAL.fullmatch(text):
        return None
    from astropy import units
    from astropy.coordinates import SkyCoord

    try:
        found = SkyCoord(text.replace(",", " ").replace(";", " "), unit=(units.hourangle, units.deg))
    except (ValueError, TypeError, IndexError, units.UnitsError):
        return None
    return _valid(float(found.ra.deg), float(found.dec.deg)) if found.isscalar else None


def _valid(ra: float, dec: float) -> Position | None:
    return Position(ra % 360.0, dec) if -360 <= ra <= 360 and abs(dec) <= 90 else None
