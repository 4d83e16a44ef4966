"""Transport documents: the small messages around VOEvents on a VTP connection.

Peers disagree on the namespace, so a message is known by the local name of its root and by its
role.  Ours have the namespace of Comet's, which every client in use knows.

Acks and iamalives in their plainest form, as nearly all of them are, are read without an XML
parser: at a thousand subscribers an event has a thousand acks, and libxml2 takes 20 µs for each.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from nightwire.gateway.voevent.xml import XMLRefusedError, local_name, parse_xml

IAMALIVE, AUTHENTICATE, ACK, NAK = "iamalive", "authenticate", "ack", "nak"
_ROLES = {IAMALIVE, AUTHENTICATE, ACK, NAK}
# the wording of Swinbank (2014); Comet never sends it
_SAME_AS = {"authenticationresponse": AUTHENTICATE}

_TEXTS = {"Origin", "Response", "Result"}
_OPEN = (
    "<?xml version='1.0' encoding='UTF-8'?>\n"
    '<trn:Transport xmlns:trn="http://www.telescope-networks.org/xml/Transport/v1.1"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="1.0"'
    ' xsi:schemaLocation="http://telescope-networks.org/schema/Transport/v1.1'
    ' http://www.telescope-networks.org/schema/Transport-v1.1.xsd"'
)

MAX_PLAIN = 2_000
"""Longest document that is read without an XML parser. [byte]"""
_ROOT = re.compile(rb"\A[^<]*(?:<[?!][^>]*>[^<]*)*<(?:[^\s<>:]+:)?Transport\b")

_SPACE = rb"[ \t\r\n]"
_NAME = rb"[A-Za-z_][A-Za-z0-9_.-]*"
_QNAME = rb"(?:%s:)?%s" % (_NAME, _NAME)
_VALUE = rb"""(?:"[^"<&\x00-\x08\x0b\x0c\x0e-\x1f]*"|'[^'<&\x00-\x08\x0b\x0c\x0e-\x1f]*')"""
_TEXT = rb"([^<>&\x00-\x08\x0b-\x1f]*)"  # a carriage return is read as a line feed
_ATTRIBUTE = re.compile(rb"%s+(%s)%s*=%s*(%s)" % (_SPACE, _QNAME, _SPACE, _SPACE, _VALUE))
_QUOTED = rb"""(?:"%s"|'%s')"""
_DECLARATION = rb"(?:<\?xml version=%s(?: encoding=%s)? ?\?>)?" % (
    _QUOTED % (rb"1\.0", rb"1\.0"),
    _QUOTED % (rb"(?i:utf-8)", rb"(?i:utf-8)"),
)
_NAMESPACE = re.compile(rb"(?!.*(?:XML/1998|2000/xmlns))[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9/._~-]*")
"""A namespace that every parser takes."""
_PLAIN = re.compile(
    rb"%s%s*<((?:%s:)?Transport)((?:%s+%s%s*=%s*%s)*)%s*>%s*"
    % (_DECLARATION, _SPACE, _NAME, _SPACE, _QNAME, _SPACE, _SPACE, _VALUE, _SPACE, _SPACE)
    + rb"<Origin>%s</Origin>%s*(?:<Response>%s</Response>%s*)?<TimeStamp>%s</TimeStamp>%s*</\1%s*>%s*"
    % (_TEXT, _SPACE, _TEXT, _SPACE, _TEXT, _SPACE, _SPACE, _SPACE)
)


class Transport(NamedTuple):
    """One Transport document.

    Attributes:
        role: One of iamalive, authenticate, ack, nak.
        origin: IVOID of the broker, or of the event that is acknowledged.
        response: IVOID of the side that answers, where it gave one.
        result: Why, in an ack or nak.
        params: Names and values of the Meta section, in order; names may repeat.
    """

    role: str
    origin: str
    response: str | None = None
    result: str | None = None
    params: tuple[tuple[str, str], ...] = ()

    @property
    def xpath_filters(self) -> list[str]:
        """Return the XPath expressions that a subscriber asks for."""
        return [value for name, value in self.params if name == "xpath-filter"]


def encode_transport(message: Transport, now: datetime) -> bytes:
    """Return *message* as a document, stamped with *now*."""
    origin = _element("Origin", message.origin)
    response = "" if message.response is None else _element("Response", message.response)
    time = f"<TimeStamp>{now.astimezone(UTC).isoformat()[:19]}Z</TimeStamp>"
    meta = _params(message.params)
    if message.result is not None:
        meta += _element("Result", message.result)
    if meta:
        meta = f"<Meta>{meta}</Meta>"
    return f'{_OPEN} role="{message.role}">{origin}{response}{time}{meta}</trn:Transport>'.encode()


@lru_cache(maxsize=64)
def _params(params: tuple[tuple[str, str], ...]) -> str:
    return "".join(f"<Param name={quoteattr(name)} value={quoteattr(value)}/>" for name, value in params)


def transport_in(document: bytes) -> Transport | None:
    """Return the message in *document*; None where it is XML, and no Transport document.

    Raises:
        XMLRefusedError: It is no XML that is read here, or its role is none of VTP's.
    """
    root = parse_xml(document)
    return read_transport(root) if is_transport(root) else None


def is_transport(root: etree._Element) -> bool:
    """Say whether *root* begins a Transport document, of whatever namespace."""
    return local_name(root) == "Transport"


def begins_transport(document: bytes) -> bool:
    """Say whether *document* looks like a Transport message, without reading it."""
    return _ROOT.search(document, 0, MAX_PLAIN) is not None


def read_transport(root: etree._Element) -> Transport:
    """Return the message that *root* holds.

    Raises:
        XMLRefusedError: The role is none of VTP's.
    """
    role = str(root.get("role", ""))
    role = _SAME_AS.get(role, role)
    if role not in _ROLES:
        raise XMLRefusedError(f"a Transport document of unknown role {role!r}")
    texts: dict[str, str] = {}
    params = []
    for element in root.iter("*"):
        name = local_name(element)
        if name == "Param":
            params.append((str(element.get("name", "")), str(element.get("value", ""))))
        elif name == "filter" and element.get("type") == "xpath":  # before Comet 1.0
            params.append(("xpath-filter", (element.text or "").strip()))
        elif name in _TEXTS and name not in texts:
            texts[name] = (element.text or "").strip()
    return Transport(role, texts.get("Origin", ""), texts.get("Response"), texts.get("Result"), tuple(params))


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(text)}</{name}>"


def plain_transport(document: bytes) -> Transport | None:
    """Return the ack or iamalive in *document*; None for anything else, or other than ASCII."""
    found = _PLAIN.fullmatch(document) if len(document) <= MAX_PLAIN and document.isascii() else None
    if found is None or (role := _role(found[1], found[2])) not in (ACK, IAMALIVE):
        return None
    response = None if found[4] is None else found[4].decode().strip()
    return Transport(role, found[3].decode().strip(), response)


@lru_cache(maxsize=1024)
def _role(tag: bytes, attributes: bytes) -> str | None:
    """Return the role among *attributes*; None where they are not well-formed, or there is none."""
    pairs = _ATTRIBUTE.findall(attributes)
    values: dict[bytes, bytes] = {name: value[1:-1] for name, value in pairs}
    used = {name.partition(b":")[0] for name in (tag, *values) if b":" in name} - {b"xmlns", b"xml"}
    if len(values) < len(pairs) or any(b"xmlns:" + prefix not in values for prefix in used):
        return None
    namespaces = [uri for name, uri in values.items() if name.partition(b":")[0] == b"xmlns"]
    if len(set(namespaces)) < len(namespaces) or not all(map(_NAMESPACE.fullmatch, namespaces)):
        return None
    return values.get(b"role", b"").decode()
