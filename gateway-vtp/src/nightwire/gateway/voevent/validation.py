"""Whether a document is an event that is accepted: from authors, and from remote brokers.

An author can mend an event, so his must be valid and well named, and a refusal says what is wrong
and on which line.  The author behind an upstream broker cannot be told, so what comes from there
must be readable and no more (Swinbank 2014, section 3.2.2).

The native check takes what is in order; what it does not, libxml2 decides, and says why.
"""

import json
import re
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from lxml import etree

from nightwire.gateway.voevent.packet import Packet, checked_packet, ivorn_complaint, read_packet
from nightwire.gateway.voevent.schema_tables import compile_schema
from nightwire.gateway.voevent.xml import MAX_DEPTH, Refusal, XMLRefusedError, parse_xml
from nightwire.schemas import engines

if TYPE_CHECKING:
    from nightwire_native import Checked, Checker

if "native" in engines():
    from nightwire_native import Checker as NativeChecker
else:  # not built, or of other sources
    NativeChecker = None  # type: ignore[assignment, misc]

NAMESPACE = "http://www.ivoa.net/xml/VOEvent/v"
_REFERENCE = re.compile(rb"""xmlns(?::[^\s=:]+)?\s*=\s*(?:"[^"&]*&|'[^'&]*&)""")
"""A namespace with a reference in it, which may make it no URI: libxml2 decides that."""

VERSIONS = ("2.0", "2.1", "1.1")
"""Versions of the standard that have a schema here."""


class InvalidEventError(Exception):
    """The event is refused; the message says why, *ivorn* which one it is.

    *kind* says why it was not even read, where that is so.
    """

    def __init__(self, reason: str, ivorn: str | None = None, kind: Refusal | None = None) -> None:
        super().__init__(reason)
        self.ivorn, self.kind = ivorn, kind


def author_packet(document: bytes, max_depth: int = MAX_DEPTH) -> Packet:
    """Return the packet that an author sent, whose elements may be nested *max_depth* deep.

    Raises:
        InvalidEventError: Not XML, no VOEvent, of no known version, against its schema, or badly
            named.
    """
    checked = check(document) if max_depth == MAX_DEPTH else None  # which knows no other depth
    packet = checked_packet(document, checked) if checked and checked.valid else None
    complaint = None
    if packet is None:
        root = _root(document, max_depth)
        packet = _packet(document, root)
        complaint = schema_complaint(root)
    if complaint := complaint or ivorn_complaint(packet.ivorn, packet.version):
        raise InvalidEventError(complaint, packet.ivorn)
    return packet


def native_packet(document: bytes, max_depth: int = MAX_DEPTH) -> Packet | None:
    """Return the packet in *document*, where the native check is built and finds it well-formed."""
    checked = check(document) if max_depth == MAX_DEPTH else None
    return checked_packet(document, checked) if checked and checked.well_formed else None


def broker_packet(document: bytes, max_depth: int = MAX_DEPTH) -> Packet:
    """Return the packet that an upstream broker sent, nested at most *max_depth* deep.

    Raises:
        InvalidEventError: Not XML, or no VOEvent with an ivorn.
    """
    return native_packet(document, max_depth) or _packet(document, _root(document, max_depth))


def schema_complaint(root: etree._Element) -> str | None:
    """Return the first fault of the VOEvent *root*, with its line, or None if it is valid."""
    namespace = etree.QName(root).namespace or ""
    version = namespace.removeprefix(NAMESPACE)
    if version not in VERSIONS:
        known = ", ".join(NAMESPACE + version for version in VERSIONS)
        return f"namespace {namespace!r} is none of {known} (line {root.sourceline})"
    try:
        _schema(version).assertValid(root)
    except etree.DocumentInvalid as error:
        return str(error)  # libxml2's words, which name the element and end in the line
    return None


def compile_schemas() -> None:
    """Compile the schemas now rather than with the first event."""
    if NativeChecker is not None:
        checker()
    for version in VERSIONS:
        _schema(version)


def _root(document: bytes, max_depth: int) -> etree._Element:
    try:
        return parse_xml(document, max_depth)
    except XMLRefusedError as error:
        raise InvalidEventError(str(error), kind=error.kind) from error


def _packet(document: bytes, root: etree._Element) -> Packet:
    try:
        return read_packet(document, root)
    except XMLRefusedError as error:
        raise InvalidEventError(str(error)) from error


@cache
def _schema(version: str) -> etree.XMLSchema:
    with as_file(files("nightwire.gateway.voevent") / "xsd") as folder:
        parser = etree.XMLParser(no_network=True)
        return etree.XMLSchema(etree.parse(str(folder / f"voevent-{version}.xsd"), parser))


def check(document: bytes) -> "Checked | None":
    """Return the result of the native check of *document*; None where it is not built."""
    if NativeChecker is None or (b"&" in document and _REFERENCE.search(document)):
        return None
    return checker().check(document)


@cache
def checker() -> "Checker":
    """Return the native check with the tables of our schemas."""
    with as_file(files("nightwire.gateway.voevent") / "xsd") as folder:
        tables = [compile_schema(folder / f"voevent-{version}.xsd") for version in VERSIONS]
    return NativeChecker([json.dumps(table) for table in tables])
