"""What a VOEvent says, as text, by lxml; `native/src/voevent/facts.rs` reads the same.

Versions 1.1, 2.0 and 2.1 differ in namespaces and little else, so elements are found by local name.
"""

from collections.abc import Iterator
from typing import TypedDict

from lxml import etree

from nightwire.gateway.voevent.xml import local_name


class WhereWhen(TypedDict):
    """Where and when an event was, in texts, stripped; None where there is none.

    Attributes:
        position: Unit, first and second coordinate, and radius of the error.
    """

    system: str | None
    scale: str | None
    time: str | None
    position: list[str | None] | None


class ParsedFields(TypedDict):
    """Texts of an event, stripped; None where there is none.

    Attributes:
        params: Name, value, unit, ucd and group of each.
        citations: ivorn and cite of each.
    """

    author: str | None
    date: str | None
    where_when: WhereWhen | None
    params: list[dict[str, str | None]]
    citations: list[dict[str, str]]


def parse_fields(root: etree._Element) -> ParsedFields:
    """Return what the VOEvent *root* says."""
    return {
        "author": _first_text(root, "Who", "AuthorIVORN"),
        "date": _first_text(root, "Who", "Date"),
        "where_when": next(map(_where_when, _find(root, "WhereWhen", "ObservationLocation")), None),
        "params": list(_params(root)),
        "citations": list(_citations(root)),
    }


def _where_when(place: etree._Element) -> WhereWhen:
    return {
        "system": _coord_system(place),
        "scale": _first_text(place, "TimeScale"),
        "time": _first_text(place, "ISOTime") or _first_text(place, "ISOTimeStart"),
        "position": _position(place),
    }


def _coord_system(place: etree._Element) -> str | None:
    for name, attribute in (("AstroCoords", "coord_system_id"), ("AstroCoordSystem", "id")):
        for element in _find(place, name):
            if value := element.get(attribute):
                return str(value)
    return None


def _position(place: etree._Element) -> list[str | None] | None:
    for name in ("Position2D", "Position3D"):
        for position in _find(place, name):
            texts = [_first_text(position, part) for part in ("C1", "C2", "Error2Radius")]
            return [position.get("unit"), *texts]
    return None


def _params(root: etree._Element) -> Iterator[dict[str, str | None]]:
    for param in _find(root, "What", "Param"):
        parent = param.getparent()
        in_group = parent is not None and local_name(parent) in ("Group", "Table")
        value = param.get("value")
        yield {
            "name": param.get("name"),
            "value": _first_text(param, "Value") if value is None else value,
            "unit": param.get("unit"),
            "ucd": param.get("ucd"),
            "group": parent.get("name") if parent is not None and in_group else None,
        }


def _citations(root: etree._Element) -> Iterator[dict[str, str]]:
    for cited in _find(root, "Citations", "EventIVORN"):
        yield {"ivorn": (cited.text or "").strip(), "cite": cited.get("cite", "")}


def _find(element: etree._Element, *path: str) -> Iterator[etree._Element]:
    """Yield the descendants of *element* whose local names lead along *path*, in document order."""
    for found in element.iterdescendants(f"{{*}}{path[0]}"):
        if len(path) == 1:
            yield found
        else:
            yield from _find(found, *path[1:])


def _first_text(element: etree._Element, *path: str) -> str | None:
    found = next(_find(element, *path), None)
    return None if found is None else (found.text or "").strip() or None
