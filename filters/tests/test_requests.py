"""The desk: what an owner asks for, and what becomes of it.  A real Kafka, the command, no Spark."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.core.process import Stop
from nightwire.filters._catalog import Catalog
from nightwire.filters._engineer import Engineer
from nightwire.filters._listing import filters
from nightwire.filters._requests import Desk
from nightwire.filters._trial import Rules
from nightwire.filters.commands import filter_
from nightwire.schemas import records, topics

pytestmark = pytest.mark.kafka

ALERTS = 100
RULES = Rules(fewest=50, alerts=80, memory_mb=256, cpu_ms=20.0)


class Office:
    """A desk that answers, and an owner who asks by the command."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.folder, self.stop = bootstrap, folder, Stop()
        engineer = Engineer(bootstrap, "http://127.0.0.1:9", folder, Catalog(bootstrap), RULES)
        self.thread = Desk(bootstrap, engineer, self.stop).start()

    def ask(self, verb: str, *arguments: str) -> Result:
        """Run a verb of `nightwire filter`."""
        return CliRunner().invoke(filter_, [verb, *arguments, "--bootstrap", self.bootstrap])

    def submit(self, name: str, code: str, *options: str) -> Result:
        """Submit *code* as a script."""
        file = self.folder / f"{name}.py"
        file.write_text(code)
        return self.ask("submit", str(file), "--name", name, "--survey", "sim", *options)

    def live(self, name: str) -> int:
        """Return the live version."""
        return filters(self.bootstrap).live_version("me", name)


@pytest.fixture(scope="module")
def office(site: Any, encode: Callable[..., bytes]) -> Iterator[Office]:
    """Yield a desk at a Kafka that holds a hundred alerts of 1 … 100 nJy."""
    site.write("alerts.sim", [encode(number, float(number)) for number in range(1, ALERTS + 1)])
    office = Office(site.bootstrap, site.folder)
    yield office
    office.stop.set()
    office.thread.join(20)


def keep(condition: str) -> str:
    """Return a filter that asks for *condition*."""
    return f"def keep(alert):\n    return {condition}\n"


def test_versions_come_go_and_come_back(office: Office) -> None:
    for limit in (99, 98, 97):
        assert office.submit("back", keep(f"alert.flux > {limit}")).exit_code == 0
    assert office.live("back") == 3
    assert "live in version 2" in office.ask("rollback", "back").output
    assert "live in version 1" in office.ask("rollback", "back", "--to", "1").output
    assert "no earlier version" in office.ask("rollback", "back").output
    assert "version 1 was live" in office.ask("disable", "back").output
    assert office.live("back") == 0
    assert "live in version 1" in office.ask("enable", "back").output
    assert "live in version 3" in office.ask("enable", "back", "--version", "3").output
    assert office.ask("remove", "back").exit_code == 0
    assert "no live filter" in office.ask("disable", "back").output
    assert "live in version 3" in office.ask("enable", "back").output
    assert "no filter back version 9" in " ".join(
        office.ask("enable", "back", "--version", "9").output.split()
    )


def test_what_is_asked_of_a_filter_is_in_its_record_and_its_log(office: Office) -> None:
    office.submit("capped", keep("alert.flux > 99 and alert.flux"), "--cap", "5", "--choice", "best")
    record = filters(office.bootstrap).versions["me", "capped", 1]
    assert (record["cap"], record["choice"], record["language"]) == (5, "best", "python")
    office.ask("disable", "capped")
    office.ask("enable", "nothing")
    log = json.loads(office.ask("log", "capped", "--json").output)
    assert [entry["kind"] for entry in log] == ["asked", "accepted", "asked", "accepted"]
    assert "cap 5 best" in log[0]["text"]
    assert "tried on 80 recent alerts" in log[1]["text"]
    assert "refused" in office.ask("log", "nothing").output
    listed = {line["name"]: line for line in json.loads(office.ask("list", "--json").output)}
    assert (listed["capped"]["state"], listed["capped"]["cap"]) == ("disabled", 5)
    assert "at most 5 alerts a visit, best" in office.ask("show", "capped").output
    assert "capped" in office.ask("list").output
    assert office.ask("top", "--once").exit_code == 0


@pytest.mark.parametrize(
    ("name", "condition", "options", "said"),
    [
        ("many", "alert.flux > 50", (), "passes too much"),
        ("none", "alert.flux > 1 / 0", (), "failed on all of 80 recent alerts: ZeroDivisionError"),
        ("huge", "len([0] * 10**9)", (), "too much memory: it takes more than 256 MB"),
        ("slow", "any(x < 0 for x in range(1_000_000))", (), "too slow"),
        ("crash", "__import__", (), "may not use __import__"),
        ("eager", "False", ("--no-trial",), "this engine tries every filter"),
    ],
)
def test_a_refusal_says_why(office: Office, name: str, condition: str, options: Any, said: str) -> None:
    done = office.submit(name, keep(condition), *options)
    assert done.exit_code == 1
    assert said in done.output
    assert office.live(name) == 0


def test_the_best_few_may_be_chosen_among_many(office: Office) -> None:
    assert office.submit("ranked", keep("alert.flux"), "--choice", "best").exit_code == 0
    assert (
        "passes too much" in office.submit("all", keep("alert.flux"), "--choice", "best", "--cap", "0").output
    )


def test_a_suspended_filter_says_so_and_can_be_enabled(office: Office) -> None:
    office.submit("tired", keep("alert.flux > 99"))
    assert Catalog(office.bootstrap).stop("me", "tired", 1, suspended="too slow in 3 batches") == 1
    assert "suspended: too slow in 3 batches" in " ".join(office.ask("show", "tired").output.split())
    assert "live in version 1" in office.ask("enable", "tired").output
    assert office.live("tired") == 1


def test_what_a_cap_cut_off_can_be_fetched(office: Office, tmp_path: Path) -> None:
    """The engine writes these records; here they are written as it does."""
    topic = topics.overflow("me", "full")
    ensure_topics(office.bootstrap, [topics.settings(topic)])
    assert "nothing was cut off" in office.ask("overflow", "full").output
    writer = Writer(producer(office.bootstrap))
    for offset, visit in ((0, 7), (1, 7), (1, 7), (2, 8)):
        one = {
            "owner": "me", "name": "full", "version": 1, "survey": "sim", "visit": visit,
            "topic": "alerts.sim", "partition": 0, "offset": offset, "alert": f"a{offset}",
            "rank": 2.5, "time": 0,
        }  # fmt: skip
        writer.write(topic, records.OVERFLOW.encode(one), key=str(visit).encode())
    writer.flush()
    assert "alerts.sim[0] 1" in office.ask("overflow", "full").output
    assert len(json.loads(office.ask("overflow", "full", "--visit", "7", "--json").output)) == 2
    done = office.ask("overflow", "full", "--save", str(tmp_path))
    assert "3 of 3 alerts" in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sim-a0.avro", "sim-a1.avro", "sim-a2.avro"]
