"""VOEvent packets: what identifies one, and which of a document's bytes are the event."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lxml import etree

from nightwire.gateway.voevent.parsed_fields import ParsedFields, parse_fields
from nightwire.gateway.voevent.roles import ROLES
from nightwire.gateway.voevent.xml import MISC, XMLRefusedError, local_name, parse_xml

if TYPE_CHECKING:
    from nightwire_native import Checked
import math
from typing import Any

from nightwire.gateway.voevent.parsed_fields import WhereWhen
from nightwire.gateway.voevent.times import SCALES, utc_from_iso

_PROLOGUE = re.compile(r"(?:\xef\xbb\xbf|\ufeff)?" + MISC, re.DOTALL)
_EPILOGUE = re.compile(MISC, re.DOTALL)
_START = re.compile(r"""<([^\s/>]+)(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_MARKUP = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|(</[^>]*>)", re.DOTALL)
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
        hash: SHA-256 of the VOEvent element's bytes: equal means the same event (VTP 2.0, section
            8).
        facts: Reads what the event says.
    """

    raw: bytes
    ivorn: str
    role: str
    version: str
    hash: bytes
    facts: Callable[[], ParsedFields] = field(repr=False, compare=False)

    @cached_property
    def root(self) -> etree._Element:
        """The parsed element."""
        return parse_xml(self.raw)


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
    return Packet(raw, ivorn, role, str(root.get("version", "")), digest, partial(parse_fields, root))


def checked_packet(raw: bytes, checked: "Checked") -> Packet | None:
    """Return the packet in *raw*, which is well-formed; None if it is no VOEvent with an ivorn."""
    ivorn = (checked.attribute("ivorn") or "").strip()
    if not (checked.element and ivorn and checked.is_named("VOEvent")):
        return None
    start, end = checked.element
    role, version = checked.attribute("role"), checked.attribute("version") or ""
    digest = hashlib.sha256(memoryview(raw)[start:end]).digest()
    return Packet(raw, ivorn, ROLES[0] if role is None else role, version, digest, checked.facts)


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


def _codec(document: bytes) -> str:
    """Name a codec in which the document's markup can be searched, byte for byte."""
    head = document[:4]
    if head.startswith(b"\xff\xfe") or head == b"<\x00?\x00":
        return "utf-16-le"
    if head.startswith(b"\xfe\xff") or head == b"\x00<\x00?":
        return "utf-16-be"
    return "latin-1"  # one byte is one character, so any encoding that agrees with ASCII on markup


def _end_of_root(text: str, start: int) -> int:
    """Return the index after the root element that opens at *start*.

    The closing tag is the last one outside of comments, instructions and CDATA sections.
    """
    tag = _START.match(text, start)
    if tag is None:
        raise XMLRefusedError("no element found")
    if tag[0].endswith("/>"):
        return tag.end()
    candidate = text.rfind(f"</{tag[1]}")
    end = text.find(">", candidate) + 1
    if candidate > start and _EPILOGUE.fullmatch(text, end) and "?>" not in text[end:]:
        return end  # as nearly always
    return max((found.end() for found in _MARKUP.finditer(text, start) if found[1]), default=len(text))


_NOWHERE: WhereWhen = {"system": None, "scale": None, "time": None, "position": None}


def voevent_fields(packet: Packet) -> dict[str, Any]:
    """Return the fields of *packet*'s VOEVENT record: all but origin and received."""
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
