"""Who writes and who reads which stream, as nodes and edges; and its files over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from directory.tests.page.conftest import Served, serving
from directory.tests.sample import HOSTILE, fill
from nightwire.directory.model import SiteRows, View
from nightwire.directory.page import graph
from nightwire.schemas.serving import KafkaAccess


@pytest.fixture
def found() -> Iterator[dict[str, Any]]:
    view = View()
    fill(view)
    yield json.loads(json.dumps(graph(view, "local")))
    view.close()


def test_edges_join_writers_topics_and_readers(found: dict[str, Any]) -> None:
    edges = {(edge["from"], edge["to"]) for edge in found["edges"]}
    assert {
        ("process/stream", "topic/alerts.sim"),
        (f"producer/{HOSTILE}", "topic/alerts.sim"),
        ("topic/alerts.sim", "filter/ann/snr"),
        ("filter/ann/snr", "topic/filter.ann.snr"),
        ("topic/filter.ann.snr", "consumer/ann.reads"),
        ("topic/filter.ann.snr", "feed/gateway/bright"),
        ("broker/antares", "topic/returns.antares"),
        ("process/gateway", "topic/voevents"),
    } <= edges
    assert {end for edge in edges for end in edge} <= {node["id"] for node in found["nodes"]}


def test_columns_run_from_writers_to_readers(found: dict[str, Any]) -> None:
    column = {node["id"]: node["column"] for node in found["nodes"]}
    way = [
        "process/stream",
        "topic/alerts.sim",
        "filter/ann/snr",
        "topic/filter.ann.snr",
        "consumer/ann.reads",
    ]
    assert [column[one] for one in way] == [0, 1, 2, 3, 4]
    assert all(column[edge["from"]] < column[edge["to"]] for edge in found["edges"])


def test_what_the_site_says_to_itself_is_marked_so(found: dict[str, Any]) -> None:
    own = {node["id"] for node in found["nodes"] if node["own"]}
    assert {"topic/requests.ann", "owner/ann", "process/filters", "topic/dead-letters"} <= own
    assert own.isdisjoint({"topic/alerts.sim", "filter/ann/snr", "process/gateway", "broker/antares"})


def test_rates_states_and_processes_are_told(found: dict[str, Any]) -> None:
    nodes = {node["id"]: node for node in found["nodes"]}
    assert (nodes["topic/alerts.sim"]["rate"], nodes["topic/alerts.lsst"]["state"]) == (256.4, "late")
    assert nodes["filter/bob/nova"]["state"] == "gone"
    states = {process["name"]: process["state"] for process in found["processes"]}
    assert (states["gateway"], states["ingest-lsst"]) == ("live", "late")
    assert found["site"]["streams"] == 9


def test_more_streams_than_can_be_drawn_are_counted() -> None:
    view = View()
    rows = SiteRows(view, "local")
    with rows.batch():
        rows.set_topics((f"requests.{n}", 1, None, None, None) for n in range(500))
        rows.set_topics(
            [*((f"a{n}", 1, None, None, None) for n in range(500)), ("alerts.sim", 1, None, None, None)]
        )
    found = graph(view, "local")
    assert (len(found["nodes"]), found["site"]["streams"]) == (400, 501)
    assert found["nodes"][0]["id"] == "topic/alerts.sim"
    view.close()


def test_the_pages_files_come_with_rules_for_the_browser(served: Served) -> None:
    for path, kind in (("", "text/html"), ("page.js", "text/javascript"), ("page.css", "text/css")):
        answer = httpx.get(served.url + path)
        assert answer.headers["Content-Type"].startswith(kind)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert httpx.get(f"{served.url}graph.json").json()["site"]["site"] == "local"


def test_documents_are_served_and_others_refused(served: Served) -> None:
    assert httpx.get(f"{served.url}export/asyncapi").json()["asyncapi"] == "3.0.0"
    assert httpx.get(f"{served.url}export/voeventregext").headers["Content-Type"] == "application/xml"
    assert b"rr_interface" in httpx.get(f"{served.url}export/regtap").content
    answer = httpx.get(f"{served.url}export/openapi")
    assert (answer.status_code, "asyncapi" in answer.json()["message"]) == (404, True)


def test_where_kafka_asks_for_passwords_the_page_does_too() -> None:
    access = KafkaAccess({"sasl.username": "ann", "sasl.password": "secret"})
    with serving(access) as guarded, httpx.Client(base_url=guarded.url) as http:
        for path in ("", "graph.json", "export/asyncapi"):
            answer = http.get(path)
            assert (answer.status_code, answer.headers["WWW-Authenticate"][:5]) == (401, "Basic")
            assert http.get(path, auth=("ann", "secret")).status_code == 200
