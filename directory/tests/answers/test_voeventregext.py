"""Streams of VOEvents as records of the Virtual Observatory's registry."""

import re
from collections.abc import Iterator

import pytest
from lxml import etree

from directory.tests.sample import fill, put
from nightwire.directory.answers.voeventregext import RI, VOE, VR, VS, XSI, voeventregext
from nightwire.directory.model import SiteRows, View

EVENTS = "ivo://ivoa.net/std/voevent"
ORDER = ["title", "shortName", "identifier", "curation", "content", "capability"]
"""Of a resource's elements, by VOResource 1.1."""


@pytest.fixture
def view() -> Iterator[View]:
    one = View()
    yield one
    one.close()


def kind_of(element: etree._Element) -> tuple[str | None, str]:
    """Return namespace and name of an element's type."""
    prefix, _, name = element.attrib[f"{{{XSI}}}type"].partition(":")
    return element.nsmap[prefix], name


def test_streams_and_who_takes_events_are_resources_of_the_standard(view: View) -> None:
    fill(view)
    root = etree.fromstring(voeventregext(view, "local"))
    resources = list(root)
    assert (root.tag, root.get("numberReturned")) == (f"{{{RI}}}VOResources", str(len(resources)))
    assert [kind_of(one) for one in resources] == [
        (VS, "CatalogService"),
        (VS, "CatalogService"),
        (VR, "Service"),
    ]
    for resource in resources:
        assert [child.tag for child in resource] == ORDER
        assert len(resource.findtext("shortName") or "") <= 16
        assert {"created", "updated", "status"} <= set(resource.attrib)
        assert resource.findtext("curation/contact/name") == "local"
        assert resource.findtext("content/referenceURL") == "http://127.0.0.1:8090"
    assert [one.findtext("identifier") for one in resources] == [
        "ivo://local/nightwire/stream/voevents",
        "ivo://local/nightwire/feed/gateway=2fbright",
        "ivo://local/nightwire/process/gateway",
    ]


def test_a_stream_says_how_to_follow_it_and_hostile_addresses_are_text(view: View) -> None:
    fill(view)
    stream = etree.fromstring(voeventregext(view, "local"))[0]
    capability = stream.find("capability")
    assert capability is not None
    assert capability.get("standardID") == EVENTS
    assert {kind_of(one) for one in capability} == {(VOE, "StreamEndpoint")}
    assert [(one.get("standardID"), [url.text for url in one]) for one in capability] == [
        (f"{EVENTS}#acc-kafka", ["kafka://127.0.0.1:9092/voevents", "kafka://[::1]:9093/voevents"]),
        (f"{EVENTS}#acc-vtp", ["vtp://<x>&:1"]),
        (f"{EVENTS}#acc-vtp", ["vtp://127.0.0.1:8099"]),
        (f"{EVENTS}#acc-vtp", ["tls://here.example:8499"]),
    ]


def test_a_name_that_means_harm_stays_a_name(view: View) -> None:
    rows, name = SiteRows(view, "<s>&", "k:1"), "</title><x>&'\""
    with rows.batch():
        put(rows, "process", "g", endpoints={"vtp_authors": "\x01\x1b]]><"})
        said = [{"name": name, "topics": ["alerts.sim"], "endpoint": "h:1"}]
        put(rows, "process", "h", capabilities={"feeds": said})
    feed, server = etree.fromstring(voeventregext(view, "<s>&"))
    assert feed.findtext("title") == f"h/{name} at <s>&"
    assert feed.findtext("content/referenceURL") == "https://www.ivoa.net/documents/VOEvent/"
    assert server.findtext("capability/interface/accessURL") == "vtp://\ufffd\ufffd]]><"


def test_a_site_without_events_has_no_record(view: View) -> None:
    SiteRows(view, "local")
    assert len(etree.fromstring(voeventregext(view, "local"))) == 0


@pytest.mark.parametrize("newest", [None, -1, 1 << 62])
def test_a_time_that_is_none_hurts_nobody(view: View, newest: int | None) -> None:
    rows = SiteRows(view, "local", "k:1")
    with rows.batch():
        rows.set_topics([("voevents", 1, None, newest, None)])
    (resource,) = etree.fromstring(voeventregext(view, "local"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(resource.get("updated")))
