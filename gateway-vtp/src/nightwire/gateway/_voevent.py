"""VOEvent packets: what identifies one, and the fields that `voevents` keeps beside its bytes.

Versions 1.1, 2.0 and 2.1 differ in namespaces and little else, so elements are found by local name.
"""

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from nightwire.gateway._times import SCALES, utc_from_iso
from nightwire.gateway._xml import XMLRefusedError, local_name

ROLES = ("observation", "prediction", "utility", "test")

_MISC = r"(?:\s|<!--.*?-->|<\?.*?\?>)*"  # what XML allows before and after the root element
_PROLOGUE = re.compile(r"(?:\xef\xbb\xbf|\ufeff)?" + _MISC, re.DOTALL)
_EPILOGUE = re.compile(_MISC, re.DOTALL)
_NAME = re.compile(r"<([^\s/>]+)")
_IVOID = re.compile(r"ivo://[^/#?\s]+(?:/[^#\s]*)?(?:#.*)?", re.DOTALL)
_IVORN = re.compile(r"ivo://[^/#?\s]+(?:/[^#\s]*)?#\S.*", re.DOTALL)


@dataclass(frozen=True)
class Packet:
    """A VOEvent as it came in, and what it is known by.

    Attributes:
        raw: The whole document, unchanged.
        ivorn: Its identifier.
        role: observation, prediction, utility or test.
        version: Of the standard, as the packet says.
        hash: SHA-256 of the VOEvent element's bytes: equal means the same event (VTP 2.0, section 8).
        root: The parsed element.
    """

    raw: bytes
    ivorn: str
    role: str
    version: str
    hash: bytes
    root: etree._Element


def read_packet(raw: bytes, root: etree._Element) -> Packet:
    """Return the packet in *raw*, of which *root* is the parsed root element.

    Raises:
        XMLRefusedError: The root is no VOEvent, or has no ivorn.
    """
    if local_name(root) != "VOEvent":
        raise XMLRefusedError(f"the root element is {local_name(root)}, not VOEvent (line {root.sourceline})")
    ivorn = str(root.get("ivorn", "")).strip()
    if not ivorn:
        raise XMLRefusedError(f"the VOEvent has no ivorn (line {root.sourceline})")
    role = str(root.get("role", ROLES[0]))
    digest = hashlib.sha256(element_bytes(raw)).digest()
    return Packet(raw, ivorn, role, str(root.get("version", "")), digest, root)


def ivorn_complaint(ivorn: str, version: str) -> str | None:
    """Return what is wrong with *ivorn* as the name of one event of *version*, or None.

    VOEvent 2.0 asks for a local part after ``#``; 1.1 and 2.1 are in use without.
    """
    form = _IVORN if version == "2.0" else _IVOID
    if form.fullmatch(ivorn):
        return None
    if _IVOID.fullmatch(ivorn):
        return f"ivorn {ivorn!r} has no local part after '#'; each event needs one of its own"
    return f"ivorn {ivorn!r} is not of the form ivo://authority/resource#event"


def element_bytes(document: bytes) -> bytes:
    """Return the bytes from the ``<`` that opens the root element to the ``>`` that closes it.

    *document* is well-formed and has no DTD.  Comments around the element, such as a signature, are
    left out.
    """
    codec = _codec(document)
    text = document.decode(codec)
    prologue = _PROLOGUE.match(text)
    start = prologue.end() if prologue else 0
    return text[start : _end_of_root(text, start)].encode(codec)


def voevent_fields(packet: Packet) -> dict[str, Any]:
    """Return the fields of the VOEVENT record that *packet* decides: all but origin and received."""
    root = packet.root
    return {
        "ivorn": packet.ivorn,
        "role": packet.role,
        "version": packet.version,
        "author": _first_text(root, "Who", "AuthorIVORN"),
        "date": _first_text(root, "Who", "Date"),
        **_where_when(root),
        "params": list(_params(root)),
        "citations": list(_citations(root)),
        "raw": packet.raw,
    }


def _codec(document: bytes) -> str:
    """Name a codec under which the document's markup can be searched and comes back byte for byte."""
    head = document[:4]
    if head.startswith(b"\xff\xfe") or head == b"<\x00?\x00":
        return "utf-16-le"
    if head.startswith(b"\xfe\xff") or head == b"\x00<\x00?":
        return "utf-16-be"
    return "latin-1"  # one byte is one character, so any encoding that agrees with ASCII on markup


def _end_of_root(text: str, start: int) -> int:
    """Return the index after the root element that opens at *start*.

    The closing tag is the one that only comments, instructions and space follow; its twin in
    a comment, an instruction or a CDATA section is followed by something else.
    """
    name = _NAME.match(text, start)
    if name is None:
        raise XMLRefusedError("no element found")
    candidate = len(text)
    while (candidate := text.rfind(f"</{name[1]}", start, candidate)) >= 0:
        end = text.find(">", candidate) + 1
        if end and _EPILOGUE.fullmatch(text, end):
            return end
    return text.find("/>", start) + 2  # an element without content


def _where_when(root: etree._Element) -> dict[str, Any]:
    fields = dict.fromkeys(("event_time", "ra", "dec", "error", "coord_system"))
    place = next(_find(root, "WhereWhen", "ObservationLocation"), None)
    if place is None:
        return fields
    system = _coord_system(place)
    fields |= {"coord_system": system, "event_time": _event_time(place, system)}
    position = next(_find(place, "Position2D"), None)
    if position is None:
        position = next(_find(place, "Position3D"), None)
    if position is not None and "GEOD" not in (system or ""):
        fields |= _position(position)
    return fields


def _coord_system(place: etree._Element) -> str | None:
    for name, attribute in (("AstroCoords", "coord_system_id"), ("AstroCoordSystem", "id")):
        for element in _find(place, name):
            if value := element.get(attribute):
                return str(value)
    return None


def _event_time(place: etree._Element, system: str | None) -> str | None:
    text = _first_text(place, "ISOTime") or _first_text(place, "ISOTimeStart")
    if not text:
        return None
    stated = [_first_text(place, "TimeScale") or "", *(system or "UTC").split("-")]
    return utc_from_iso(text, next((scale for scale in stated if scale in SCALES), ""))


def _position(position: etree._Element) -> dict[str, float | None]:
    factor = math.degrees(1) if position.get("unit", "deg").startswith("rad") else 1.0
    found = {
        "ra": _number(_first_text(position, "C1")),
        "dec": _number(_first_text(position, "C2")),
        "error": _number(_first_text(position, "Error2Radius")),
    }
    return {name: None if value is None else value * factor for name, value in found.items()}


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


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is None or math.isfinite(value) else None
