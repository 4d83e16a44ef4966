"""Formatting of positions, numbers, URLs and example code for pages."""

import math
from typing import Any
from urllib.parse import quote

from nightwire.portal.model.rows import VOEVENT, Row


def sexagesimal(ra: float | None, dec: float | None) -> str:
    """Return a position as hours and degrees, and a second line in degrees; empty without one."""
    if ra is None or dec is None or abs(dec) > 90:
        return ""
    from astropy import units
    from astropy.coordinates import SkyCoord

    position = SkyCoord(ra, dec, unit=units.deg)
    text = position.to_string("hmsdms", sep=":", precision=2, pad=True, alwayssign=True).lstrip("+")
    return f"{text}\n{ra:.6f} {dec:+.6f}"


def galactic(ra: float | None, dec: float | None) -> str:
    """Return galactic longitude and latitude; empty without a position. [deg]"""
    if ra is None or dec is None or abs(dec) > 90:
        return ""
    from astropy import units
    from astropy.coordinates import SkyCoord

    position = SkyCoord(ra, dec, unit=units.deg).galactic
    return f"{position.l.deg:.4f} {position.b.deg:+.4f}"


def fixed(value: Any, digits: int, *, sign: bool = False) -> str:
    """Return a number with so many digits behind the point; a dash for none."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    return format(value, f"{'+' if sign else ''}.{digits}f")


def path(*parts: Any) -> str:
    """Return a URL path of *parts*, each quoted: a stranger's text stays one part."""
    return "/" + "/".join(quote(str(part), safe="") for part in parts)


def object_url(row: Row) -> str:
    """Return the URL of the page of a row's object, opened at its alert."""
    found = path("object", row.survey, row.object or row.id)
    return f"{found}?alert={quote(row.id, safe='')}" if row.object else found


def python_lines(row: Row, base: str) -> str:
    """Return Python that fetches an object's alerts, over HTTP and from Kafka.

    Args:
        row: Of the object.
        base: URL of this portal.
    """
    name = row.object or row.id
    lines = [
        "import httpx",
        "",
        f"found = httpx.get({base + path('api', 'object', row.survey, name)!r}).json()",
    ]
    lines += [
        "",
        "# or from Kafka, as long as it has them",
        "from nightwire.consumers import AlertReader",
        "",
    ]
    where = "" if row.survey == VOEVENT else f", where={_condition(row)!r}"
    lines += [f'with AlertReader({row.source!r}, start="beginning", follow=False{where}) as alerts:']
    return "\n".join([*lines, "    for alert in alerts:", "        print(alert.summary, alert.stamps)"])


def _condition(row: Row) -> str:
    """Return the SQL condition of the object's alerts, by canonical attributes."""
    name = row.object or row.id
    literal = name if name.isdecimal() else "'" + name.replace("'", "''") + "'"
    return f"object_id = {literal} OR solar_system_id = {literal}" if row.object else f"id = {literal}"
