"""Transport documents: the small messages around VOEvents on a VTP connection.

Peers disagree on the namespace, so a message is known by the local name of its root and by its
role.  What is sent carries the namespace that Comet sends, which every client in use knows.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from nightwire.gateway._xml import XMLRefusedError, local_name, parse_xml

IAMALIVE, AUTHENTICATE, ACK, NAK = "iamalive", "authenticate", "ack", "nak"
_ROLES = {IAMALIVE, AUTHENTICATE, ACK, NAK}
_SAME_AS = {"authenticationresponse": AUTHENTICATE}  # the wording of Swinbank (2014); Comet never sends it

_TEXTS = {"Origin", "Response", "Result"}
_OPEN = (
    "<?xml version='1.0' encoding='UTF-8'?>\n"
    '<trn:Transport xmlns:trn="http://www.telescope-networks.org/xml/Transport/v1.1"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="1.0"'
    ' xsi:schemaLocation="http://telescope-networks.org/schema/Transport/v1.1'
    ' http://www.telescope-networks.org/schema/Transport-v1.1.xsd"'
)


@dataclass(frozen=True)
class Transport:
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
    parts = [f"{_OPEN} role={quoteattr(message.role)}>", _element("Origin", message.origin)]
    if message.response is not None:
        parts.append(_element("Response", message.response))
    parts.append(f"<TimeStamp>{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}</TimeStamp>")
    meta = [f"<Param name={quoteattr(name)} value={quoteattr(value)}/>" for name, value in message.params]
    if message.result is not None:
        meta.append(_element("Result", message.result))
    if meta:
        parts.append(f"<Meta>{''.join(meta)}</Meta>")
    return f"{''.join(parts)}</trn:Transport>".encode()


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
