"""A site's streams of VOEvents as records of the Virtual Observatory's registry.

As VOEvent 2.1 (IVOA, 2025, section 5) asks: each stream is a ``vs:CatalogService`` with a
capability of the standard ``ivo://ivoa.net/std/voevent``, and each way to follow it is a
``voe:StreamEndpoint`` of VOEventRegExt 2.  VOEventStream and VOEventServer, types of the working
draft of 2014, never became a standard.  Who takes VOEvents from authors is a ``vr:Service``.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET

from nightwire.directory.answers.votable import xml_text
from nightwire.directory.model import EVENTS, View, ivoid
from nightwire.schemas.topics import VOEVENTS

RI = "http://www.ivoa.net/xml/RegistryInterface/v1.0"
VR = "http://www.ivoa.net/xml/VOResource/v1.0"
VS = "http://www.ivoa.net/xml/VODataService/v1.1"
VOE = "http://www.ivoa.net/xml/VOEventRegExt/v2"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
for prefix, space in {"ri": RI, "vr": VR, "vs": VS, "voe": VOE, "xsi": XSI}.items():
    ET.register_namespace(prefix, space)
TYPE = f"{{{XSI}}}type"
KAFKA = """SELECT bootstrap, strftime('%Y-%m-%dT%H:%M:%SZ', newest / 1000, 'unixepoch') FROM streams
WHERE site = ? AND topic = ? AND state <> 'gone'"""
ENDPOINTS = """SELECT kind, name, endpoints ->> ?2,
    strftime('%Y-%m-%dT%H:%M:%SZ', heard / 1000, 'unixepoch') FROM peers
WHERE site = ?1 AND kind IN ('process', 'site') AND state <> 'gone' AND endpoints ->> ?2 <> ''
ORDER BY kind, name"""
PAGE = "SELECT endpoints ->> 'directory' FROM peers WHERE site = ?1 AND kind = 'site' AND name = ?1"
NEVER = "1970-01-01T00:00:00Z"
STANDARD = "https://www.ivoa.net/documents/VOEvent/"
"""The reference URL where the site has no page."""
FEEDS = """SELECT gateway || '/' || name, endpoint FROM feeds
WHERE site = ? AND topic <> ? AND state <> 'gone' GROUP BY gateway, name"""


class Record(NamedTuple):
    """A stream of VOEvents, or a service that takes them: its kind and name in the directory.

    `about` describes it, `heard` is its last sign of life [UTC], `endpoints` its URLs by the
    standard's key, `follows` the standard of its capability, empty for none.
    """

    kind: str
    name: str
    about: str
    heard: str
    endpoints: list[tuple[str, list[str]]]
    follows: str = EVENTS


def voeventregext(view: View, site: str) -> bytes:
    """Return the streams of VOEvents of *site* and the services that take VOEvents, as XML.

    Raises:
        QueryError: There are more of them than an answer may have rows.
    """
    found = [*_streams(view, site), *_authors(view, site)]
    more = {"from": "1", "numberReturned": str(len(found)), "more": "false"}
    root = ET.Element(f"{{{RI}}}VOResources", more)
    pages = [page for (page,) in view.query(PAGE, site).rows if page]
    for record in found:
        _write(root, site, record, pages[0] if pages else STANDARD)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _streams(view: View, site: str) -> Iterator[Record]:
    kafka = view.query(KAFKA, site, VOEVENTS).rows
    endpoints = view.query(ENDPOINTS, site, "vtp_subscribers").rows
    heard = max((row[-1] or NEVER for row in (*kafka, *endpoints)), default=NEVER)
    ways = [
        ("acc-kafka", [f"kafka://{address}/{VOEVENTS}" for address in bootstrap.split(",")])
        for bootstrap, _ in kafka
    ] + [("acc-vtp", [_url(row[2])]) for row in endpoints]
    if ways:
        yield Record("stream", VOEVENTS, "All VOEvents of the site", heard, ways)
    for name, endpoint in view.query(FEEDS, site, VOEVENTS).rows:
        about = "What a gateway sends as VOEvents from topics of alerts"
        yield Record("feed", name, about, heard, [("acc-vtp", [_url(endpoint)])])


def _authors(view: View, site: str) -> Iterator[Record]:
    for kind, name, address, heard in view.query(ENDPOINTS, site, "vtp_authors").rows:
        yield Record(
            kind, name, "Takes VOEvents from authors", heard or NEVER, [("acc-vtp", [_url(address)])], ""
        )


def _url(address: str) -> str:
    return address if "://" in address else f"vtp://{address}"


def _write(root: ET.Element, site: str, record: Record, page: str) -> None:
    """Add *record* with the reference URL *page*, in the order of VOResource 1.1."""
    kind = ET.QName(VS, "CatalogService") if record.follows else ET.QName(VR, "Service")
    attributes: Mapping[str, object] = {
        "created": record.heard,
        "updated": record.heard,
        "status": "active",
        TYPE: kind,
    }
    resource = ET.SubElement(root, f"{{{RI}}}Resource", attributes)  # type: ignore[arg-type]  # QNames
    _text(resource, "title", f"{record.name} at {site}")
    _text(resource, "shortName", record.name[:16])
    _text(resource, "identifier", ivoid(site, record.kind, record.name))
    curation = ET.SubElement(resource, "curation")
    _text(curation, "publisher", site)
    _text(ET.SubElement(curation, "contact"), "name", site)
    content = ET.SubElement(resource, "content")
    _text(content, "subject", "transient events")
    _text(content, "description", record.about)
    _text(content, "referenceURL", page)
    _write_endpoints(resource, record)


def _write_endpoints(resource: ET.Element, record: Record) -> None:
    standard = {"standardID": record.follows} if record.follows else {}
    capability = ET.SubElement(resource, "capability", standard)
    for key, urls in record.endpoints:
        way = {"standardID": f"{EVENTS}#{key}", "role": "std", TYPE: ET.QName(VOE, "StreamEndpoint")}
        interface = ET.SubElement(capability, "interface", way)  # type: ignore[arg-type]  # QNames
        for url in urls:
            _text(interface, "accessURL", url)


def _text(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = xml_text(text)
