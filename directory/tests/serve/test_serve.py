"""The directory's process on a real Kafka, by HTTP: what it answers, and what it refuses."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from directory.tests.serve.served import Directory
from nightwire.core.kafka import producer
from nightwire.core.presence import entry, entry_key, registered
from nightwire.core.stack import free_port
from nightwire.schemas.records import ENTRY
from nightwire.schemas.serving import serve_wsgi
from nightwire.schemas.topics import DIRECTORY
from tests._waiting import until

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def directory(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    one = Directory.on(kafka, tmp_path_factory.mktemp("directory"))
    yield one
    one.stop()


def test_it_knows_itself_and_its_site(directory: Directory) -> None:
    until(lambda: directory.state("directory") == "live", "the directory is live")
    (site,) = directory.ask("SELECT site, bootstrap, live FROM sites")
    assert (site["site"], site["bootstrap"]) == ("local", directory.bootstrap)
    assert site["live"] >= 1


def test_a_process_is_there_from_its_first_word_to_its_goodbye(directory: Directory) -> None:
    with registered(directory.bootstrap, "here"):
        until(lambda: directory.state("here") == "live", "it is live")
    until(lambda: directory.state("here") == "gone", "it said goodbye")


def test_answers_come_in_each_form(directory: Directory) -> None:
    sql = "SELECT 'o''hara' AS name, 1 AS number"
    assert directory.http.get("/query", params={"sql": sql}).json() == [{"name": "o'hara", "number": 1}]
    arrow = directory.http.post("/query?as=arrow", json={"sql": sql}).content
    assert pa.ipc.open_stream(arrow).read_all().to_pylist() == [{"name": "o'hara", "number": 1}]
    assert b"o'hara" in directory.http.post("/query?as=votable", json={"sql": sql}).content


FOR_EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


THOUSAND = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)"
MILLION = f"{THOUSAND} SELECT a.i FROM n AS a, n AS b"  # noqa: S608


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ('{"sql": "DELETE FROM entries"}', 400, "SELECT alone"),
        ('{"sql": "ATTACH \'x\' AS x"}', 400, "SELECT alone"),
        (json.dumps({"sql": FOR_EVER}), 400, "longer than 2 s"),
        (json.dumps({"sql": MILLION}), 400, "more than 10000 rows"),
        ('{"sql": "SELECT nothing FROM peers"}', 400, "nothing"),
        ('{"sql": 1}', 400, "SELECT"),
        ("no json", 400, "no JSON"),
        ("[" * 50_000, 400, "no JSON"),
        ("x" * 200_000, 413, "longer than"),
    ],
    ids=lambda one: str(one)[:24],
)
def test_a_question_that_cannot_be_is_refused_with_the_reason(
    directory: Directory, body: str, status: int, why: str
) -> None:
    answer = directory.http.post("/query", content=body)
    assert (answer.status_code, why in answer.json()["message"]) == (status, True), answer.text


def test_long_questions_of_one_address_are_bounded_and_nobody_waits_for_them(directory: Directory) -> None:
    status = list[int]()

    def ask() -> None:
        url = f"http://127.0.0.1:{directory.port}/query"
        status.append(httpx.post(url, json={"sql": FOR_EVER}, timeout=60).status_code)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    assert directory.ask("SELECT 1 AS one") == [{"one": 1}]
    for thread in threads:
        thread.join()
    assert set(status) == {400, 429}
    assert 'path="/query",status="429"' in directory.metrics()


def test_entries_are_listed_and_taken_out(directory: Directory) -> None:
    said = {"kind": "broker", "name": "a b'c\"", "owner": "ann", "endpoints": {"https": "x.example:443"}}
    assert directory.http.post("/entries", json=said).status_code == 201
    sql = "SELECT owner, state FROM peers WHERE kind = 'broker'"
    until(lambda: directory.ask(sql) == [{"owner": "ann", "state": "listed"}], "it is listed")
    assert directory.http.delete("/entries/broker/a%20b'c%22").status_code == 204
    until(lambda: directory.ask(sql) == [], "it is taken out")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"kind": "planet", "name": "x"}, "no kind"),
        ({"kind": "broker", "name": "a\nb"}, "printable"),
        ({"kind": "broker", "name": "a/b"}, "no '/'"),
        ({"kind": "broker", "name": 3}, "texts"),
        ({"kind": "broker", "name": "x", "site": "other"}, "site"),
        ({"kind": "broker", "name": "x", "capabilities": {"a": "x" * 70_000}}, "limit"),
        ({"kind": "broker", "name": "x", "capabilities": []}, "object"),
        ({"kind": "broker", "name": "x", "endpoints": {"a": 1}}, "texts"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_an_entry_that_cannot_be_is_refused_with_the_reason(
    directory: Directory, said: dict[str, object], why: str
) -> None:
    answer = directory.http.post("/entries", json=said)
    assert (answer.status_code, why in answer.json()["message"]) == (400, True), answer.text


def refused(directory: Directory) -> float:
    found = re.search(r"^nightwire_directory_refused_records (\S+)$", directory.metrics(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_records_that_cannot_stand_harm_nobody(directory: Directory) -> None:
    forged, before = entry("process", "forged"), refused(directory)
    client = producer(directory.bootstrap)
    for key, value in {
        "local/process/noise": b"no record",
        "local/process/huge": bytes(100_000),
        "local/process/another": ENTRY.encode(forged),
        "elsewhere/process/x": ENTRY.encode({**forged, "site": "elsewhere", "name": "x"}),
        "local/process/nan": ENTRY.encode({**forged, "name": "nan", "capabilities": '{"feeds": NaN}'}),
        "no key": None,
    }.items():
        client.produce(DIRECTORY, value, key, partition=0)
    honest = entry("process", "honest", capabilities={"feeds": ["x", {"topics": 3}, {"name": "f"}]})
    client.produce(DIRECTORY, ENTRY.encode(honest), entry_key(honest), partition=0)
    assert client.flush(30) == 0
    until(lambda: directory.state("honest") == "listed", "the honest one is there")
    wrong = "SELECT name FROM peers WHERE name IN ('noise', 'huge', 'another', 'x', 'nan', 'forged')"
    assert directory.ask(wrong) == []
    assert refused(directory) == before + 6
    assert isinstance(directory.ask("SELECT * FROM feeds"), list)


def test_prometheus_finds_who_is_there_and_who_fell_silent_but_not_who_said_goodbye(
    directory: Directory,
) -> None:
    def found() -> dict[str, dict[str, str]]:
        return {one["targets"][0]: one["labels"] for one in directory.http.get("/http_sd").json()}

    pages = {"metrics": "127.0.0.1:9", "metrics:spark": "127.0.0.1:9/spark"}
    wanted = {"job": "nightwire", "process": "watched"}
    with registered(directory.bootstrap, "watched", endpoints={"metrics": pages["metrics"]}):
        until(lambda: found().get("127.0.0.1:9") == wanted, "its page is found")
    until(lambda: "127.0.0.1:9" not in found(), "it said goodbye")
    with registered(directory.bootstrap, "sparking", endpoints={"metrics:spark": pages["metrics:spark"]}):
        spark = {"job": "spark", "__metrics_path__": "/spark"}
        until(lambda: found().get("127.0.0.1:9") == spark, "a job's page is found at its path")


def test_what_cannot_register_is_listed_while_its_page_answers(kafka: str, tmp_path: Path) -> None:
    def page(_environ: object, start_response: object) -> list[bytes]:
        start_response("200 OK", [])  # type: ignore[operator]
        return [b"up 1\n"]

    server = serve_wsgi(page, "127.0.0.1", port := free_port())
    one = Directory.on(kafka, tmp_path, "--watch", f"machine:node=127.0.0.1:{port}")
    try:
        until(lambda: one.state("machine") == "live", "it is live")
        assert f"127.0.0.1:{port}" in one.http.get("/http_sd").text
        server.shutdown()
        server.server_close()
        until(lambda: one.state("machine") == "gone", "its page is gone")
        assert f"127.0.0.1:{port}" in one.http.get("/http_sd").text, "so Prometheus tells of it"
    finally:
        one.stop()


def test_the_page_and_the_documents_of_a_real_site_are_there(directory: Directory) -> None:
    assert directory.http.get("/").text.startswith("<!doctype html>")
    found = directory.http.get("/graph.json").json()
    assert {"topic/directory", "topic/filters"} <= {node["id"] for node in found["nodes"]}
    assert "directory" in {process["name"] for process in found["processes"]}
    channels = directory.http.get("/export/asyncapi").json()["channels"]
    assert channels["directory"]["servers"] == [{"$ref": "#/servers/kafka-1"}]
