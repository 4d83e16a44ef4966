"""The fields that `voevents` keeps beside an event's bytes."""

import math
from typing import Any

from nightwire.gateway._facts import WhereWhen
from nightwire.gateway._times import SCALES, utc_from_iso
from nightwire.gateway._voevent import Packet

_NOWHERE: WhereWhen = {"system": None, "scale": None, "time": None, "position": None}


def voevent_fields(packet: Packet) -> dict[str, Any]:
    """Return the fields of the VOEVENT record that *packet* decides: all but origin and received."""
    facts = packet.facts()
    place = facts["where_when"] or _NOWHERE
    return {
        "ivorn": packet.ivorn,
        "role": packet.role,
        "version": packet.version,
        "author": facts["author"],
        "date": facts["date"],
        "event_time": _event_time(place),
        "coord_system": place["system"],
        **_position(place),
        "params": facts["params"],
        "citations": facts["citations"],
        "raw": packet.raw,
    }


def _event_time(place: WhereWhen) -> str | None:
    if not place["time"]:
        return None
    stated = [place["scale"] or "", *(place["system"] or "UTC").split("-")]
    return utc_from_iso(place["time"], next((scale for scale in stated if scale in SCALES), ""))


def _position(place: WhereWhen) -> dict[str, float | None]:
    """Return place and error [deg]; None each where it is no place in the sky."""
    unit, *numbers = place["position"] or [None] * 4
    factor = math.degrees(1) if (unit or "").startswith("rad") else 1.0
    on_the_ground = "GEOD" in (place["system"] or "")
    found = [None if on_the_ground else _number(text) for text in numbers]
    scaled = [None if value is None else value * factor for value in found]
    return dict(zip(("ra", "dec", "error"), scaled, strict=True))


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is None or math.isfinite(value) else None
