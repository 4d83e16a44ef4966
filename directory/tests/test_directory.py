"""The directory by its command, in a real Kafka."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nightwire.core.kafka import ensure_topics, producer
from nightwire.core.presence import registered
from nightwire.core.subscriptions import Registrar
from nightwire.directory import find
from nightwire.directory.commands import directory
from nightwire.directory.ingest import MAX_RECORD, load
from nightwire.directory.model import SiteRows, View
from nightwire.schemas.topics import DIRECTORY, FILTERS, SUBSCRIPTIONS, settings

pytestmark = pytest.mark.kafka


@pytest.fixture
def site(kafka: str) -> str:
    ensure_topics(kafka, [settings(DIRECTORY), settings(FILTERS)])
    return kafka


def ask(kafka: str, *words: str) -> str:
    found = CliRunner().invoke(directory, [*words, "--bootstrap", kafka], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_what_is_added_is_found_until_it_is_removed(site: str) -> None:
    ask(site, "add", "broker", "o'hara", "--owner", "ann", "--endpoint", "https=here.example:443")
    sql = "SELECT name, owner, state, endpoints FROM peers WHERE kind = 'broker'"
    assert json.loads(ask(site, "query", sql, "--as", "json")) == [
        {
            "name": "o'hara",
            "owner": "ann",
            "state": "listed",
            "endpoints": '{"https": "here.example:443"}',
        }
    ]
    for form in ("table", "arrow", "votable"):
        assert "o'hara" in ask(site, "query", sql, "--as", form)
    ask(site, "remove", "broker", "o'hara")
    assert find(sql, bootstrap=site).rows == []
    empty = CliRunner().invoke(directory, ["query", sql, "--bootstrap", site])
    assert (empty.exit_code, empty.stdout, empty.stderr) == (0, "", "no rows\n")


def test_documents_are_made_of_the_log_where_nobody_answers(site: str, tmp_path: Path) -> None:
    ask(site, "export", "asyncapi", "--out", str(tmp_path / "streams.json"))
    channels = json.loads((tmp_path / "streams.json").read_bytes())["channels"]
    assert {"directory", "filters"} <= channels.keys()
    assert "rr_resource" in ask(site, "export", "regtap")


def test_processes_and_topics_are_there_by_themselves(site: str) -> None:
    with registered(site, "leaver"):
        pass
    assert find("SELECT state FROM processes WHERE name = 'leaver'", bootstrap=site).rows == [("gone",)]
    assert find("SELECT kind FROM streams WHERE topic = 'filters'", bootstrap=site).rows == [("filters",)]


def test_records_that_cannot_stand_are_counted_and_passed_over(site: str) -> None:
    client, before = producer(site), refused(site)
    for value in (b"no record", b"\0" * (MAX_RECORD + 1)):
        client.produce(DIRECTORY, value, f"local/process/{len(value)}", partition=0)
    assert client.flush(30) == 0
    assert refused(site) == before + 2


def refused(site: str) -> int:
    view = View()
    rows = SiteRows(view, "local")
    load(site, rows)
    view.close()
    return rows.refused


def test_what_cannot_be_added_is_said(site: str) -> None:
    for words in (["broker", "a\nb"], ["planet", "x"], ["broker", "x", "--capabilities", "[1]"]):
        found = CliRunner().invoke(directory, ["add", *words, "--bootstrap", site])
        assert found.exit_code != 0
        assert "no " in str(found.exception) + found.output


def test_who_wants_what_is_there_until_it_is_taken_back(site: str) -> None:
    ensure_topics(site, [settings(SUBSCRIPTIONS)])
    sql = "SELECT subscriber, topic, condition, state, channel FROM subscriptions WHERE name = 'bright'"
    with Registrar(site, "ann") as ann:
        ann.subscribe("bright", "alerts.sim", "magnitude < 19").result(10)
        assert find(sql, bootstrap=site).rows == [("ann", "alerts.sim", "magnitude < 19", "live", None)]
    assert find(sql, bootstrap=site).rows == []
