"""The embedded stack as a whole: up, one visit through everything, any process killed, down."""

import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import fastavro
import httpx
import pytest

from conftest import PAGES
from nightwire.core.kafka import ensure_topics, read_to_end
from nightwire.core.runtime import clean_environment, process_started
from nightwire.core.stack import free_port
from nightwire.core.stack.status import collect
from nightwire.monitoring.dashboards import ALL, Row
from nightwire.schemas.topics import alerts, filter_topic, settings
from producer.tests.ingest.survey_kafka import SurveyKafka, container
from tests._waiting import until
from tests.compose.stack import Subscriber

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

NOTEBOOKS = sorted((Path(__file__).parent.parent / "filters" / "notebooks").glob("*.ipynb"))
MORE = ("--jmx", "--remote", f"127.0.0.1:{free_port()}")
"""What the stack has beside the usual: Kafka tells of itself; and a VTP broker that is away."""
TOPICS = [filter_topic("me", path.stem) for path in NOTEBOOKS]


class Stack:
    """What a person types, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = clean_environment(os.environ)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "nightwire.core.cli", *words]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str, status: int = 0) -> str:
        child = self.start(*words)
        out, err = child.communicate(timeout=400)
        assert child.returncode == status, f"nightwire {' '.join(words)}: {child.returncode}\n{out}\n{err}"
        return out + err if status else out

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def status(self) -> dict[str, Any]:
        """Return what `nightwire status --json` prints, without the seconds of a process."""
        found = collect(self.folder / ".nightwire")
        assert found is not None, "no stack runs"
        return found

    @property
    def kafka(self) -> str:
        state = json.loads((self.folder / ".nightwire" / "state.json").read_text())
        return str(state["endpoints"]["kafka"])

    def processes(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.status()["processes"]}

    def stages(self) -> dict[str, dict[str, int]]:
        return {one["stage"]: one for one in self.status()["stages"]}

    def stages_at_once(self) -> dict[str, dict[str, int]]:
        """Return the stages without the archive's, which comes a minute behind."""
        return {name: one for name, one in self.stages().items() if name != "archive"}

    def records(self, topic: str) -> int:
        """Count a topic as a fresh consumer does, copies of one alert once."""
        seen = Counter(
            (headers.get("topic"), headers.get("partition"), headers.get("offset"))
            if (headers := dict(message.headers() or [])) and "offset" in headers
            else (message.partition(), message.offset())
            for message in read_to_end(self.kafka, [topic])
        )
        return len(seen)

    def written(self) -> int:
        """Count the alerts of the surveys that are written to."""
        return self.records(alerts("sim")) + self.records(alerts("little"))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    one = Stack(tmp_path_factory.mktemp("stack"))
    one.run("up", "--ports", "free", "--state", ".nightwire", *MORE)
    yield one
    one.run("down")


def settled(stack: Stack) -> None:
    """Wait until the filters have judged every alert of their surveys, those in slow lanes too."""

    def judged() -> bool:
        status = stack.status()
        stages = {one["stage"]: one for one in status["stages"]}
        return (
            status["kafka_answers"]
            and stages.get("filters", {}).get("in", 0) == stages["producer"]["delivered"]
        )

    def each_has() -> bool:
        filters = {name: one["in"] for name, one in stack.stages().items() if name.startswith("filter.")}
        return all(read == (little if ".little-" in name else sim) for name, read in filters.items())

    until(judged, "the filters judge every alert")
    little, sim = (stack.records(alerts(one)) for one in ("little", "sim"))
    until(each_has, "every filter has judged every alert")


def assert_three_counts_agree(stack: Stack) -> None:
    stages = stack.stages()
    assert stack.written() == stages["producer"]["delivered"] == stages["filters"]["in"]
    for topic in TOPICS:
        assert stack.records(topic) == stages[topic]["delivered"], topic
        one = stages[topic]
        assert one["in"] == one["delivered"] + one["rejected"] + one["capped"] + one["faulted"]
    assert stack.records("voevents") == stages["gateway"]["delivered"]
    assert stack.json("accounts")["discrepancies"] == []


def test_all_is_healthy_and_where_it_says(stack: Stack) -> None:
    found = stack.json("status")
    assert found == stack.status() | {"disk": found["disk"]}
    assert {"kafka", "schema_registry", "directory", "vtp_authors", "vtp_subscribers", "metrics"} <= set(
        found["endpoints"]
    )
    assert {one["state"] for one in found["processes"]} == {"healthy"}
    wanted = {"kafka", "schema_registry", "directory", "gateway", "filters", "exporter"}
    assert wanted | {"archive", "flows", "portal"} <= {one["name"] for one in found["processes"]}


def test_a_second_up_says_so_and_does_no_harm(stack: Stack) -> None:
    before = stack.processes()
    child = stack.start("up")
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "Already running" in err
    assert stack.processes() == before


def test_a_visit_goes_through_everything(stack: Stack) -> None:
    said = stack.run("demo", "--alerts", "200", "--events", "20")
    assert "To stop" in said
    assert_three_counts_agree(stack)
    assert stack.stages()["producer"]["delivered"] == 200
    assert stack.stages()["gateway"]["delivered"] == 20


def test_an_owner_sees_his_filters_at_work(stack: Stack) -> None:
    def seen() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = stack.json("filter", "top")
        return found

    until(
        lambda: [one["evaluated"] for one in seen()] == [200] * len(TOPICS), "the engine tells of all filters"
    )
    stages = stack.stages()
    for one in seen():
        assert one["cost_us"] > 0
        assert one["sent"] == stages[f"filter.{one['key'].replace('/', '.')}"]["delivered"]
        assert (one["passed_at"] is None) == (one["passed"] == 0)
        assert (one["delay_p50"] is None) == (one["sent"] == 0)
    assert "live filters" in stack.run("filter", "top", "--once")


def test_the_portal_says_what_the_commands_say(stack: Stack) -> None:
    url = stack.status()["endpoints"]["portal"]

    def night() -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{url}/api/night", timeout=60).json()
        return {name: one["answer"] for name, one in found.items()}

    until(lambda: bool(night()["gateways"]), "the directory knows the gateway")
    found = night()
    assert {one["stage"]: one["read"] for one in found["accounts"]["stages"]}["producer"] == 200
    assert {f"filter.{one['owner']}.{one['name']}" for one in found["filters"]} == set(TOPICS)
    assert found["letters"] == []
    assert "alerts.sim" in {one["name"] for one in found["streams"]["nodes"]}
    assert [one["role"] for one in found["gateways"][0]["listening"]][:1] == ["authors"]


LITTLE = """
title = "The Little Telescope"
[ids]
alert = ["candidate.id"]
object = ["candidate.id"]
visit = ["candidate.id"]
[source]
path = "candidate"
time = "mjd"
time_scale = "tai"
time_zero = 0
ra = "ra"
dec = "dec"
band = ""
magnitude = "mag"
[stamps]
[topic]
partitions = 1
days = 1
"""


def test_a_survey_that_is_described_while_it_runs_is_one(stack: Stack) -> None:
    (stack.folder / ".nightwire" / "surveys" / "little.toml").write_text(LITTLE)
    numbers = {"id": 0, "mjd": 60000.5, "ra": 1.0, "dec": 2.0, "mag": 0.0}
    kinds = {"id": "long"} | dict.fromkeys([*numbers][1:], "double")
    record = {"type": "record", "name": "c", "fields": [{"name": n, "type": k} for n, k in kinds.items()]}
    schema = {"type": "record", "name": "alert", "fields": [{"name": "candidate", "type": record}]}
    with (stack.folder / "little.avro").open("wb") as file:
        alerts_of = [{"candidate": {**numbers, "id": number, "mag": 10.0 + number}} for number in range(10)]
        fastavro.writer(file, schema, alerts_of)
    (stack.folder / "bright.sql").write_text("magnitude < 15")
    stack.run("filter", "submit", "bright.sql", "--name", "little-ones", "--survey", "little")
    rows = "import statistics\ndef keep(alert):\n    return statistics.mean([alert.magnitude]) < 15\n"
    (stack.folder / "rows.py").write_text(rows)
    stack.run("filter", "submit", "rows.py", "--name", "little-rows", "--survey", "little")
    stack.run("replay", "little.avro", "--survey", "little")
    for name in ("little-ones", "little-rows"):
        until(lambda name=name: stack.records(f"filter.me.{name}") == 5, f"five of ten pass {name}", 60)
    settled(stack)


@pytest.mark.parametrize(
    "names", [["kafka"], ["filters", "schema_registry", "gateway", "exporter"]], ids=" ".join
)
def test_any_process_may_be_killed_during_a_visit(stack: Stack, names: list[str]) -> None:
    before, restarts = stack.stages(), {name: stack.processes()[name]["restarts"] for name in names}
    visit = stack.start("simulate", "--visits", "2", "--alerts", "200", "--interval", "3s", "--json")
    until(lambda: stack.written() > before["producer"]["delivered"], "the visit begins")
    events = stack.start(
        "send", "--samples", "50", "--first-sample", str(stack.records("voevents")), "--json"
    )
    for name in names:
        os.kill(stack.processes()[name]["pid"], signal.SIGKILL)
    written, sent = (json.loads(child.communicate(timeout=300)[0]) for child in (visit, events))
    assert (written["acknowledged"], sent["acked"]) == (400, 50)
    for name in names:
        until(lambda: stack.processes()[name]["restarts"] > restarts[name], f"{name} comes back")  # noqa: B023
    until(lambda: {one["state"] for one in stack.processes().values()} == {"healthy"}, "all is healthy")
    settled(stack)
    until(lambda: stack.stages()["gateway"]["delivered"] >= before["gateway"]["delivered"] + 50, "events")
    after = stack.stages()
    assert after["producer"]["delivered"] == before["producer"]["delivered"] + 400
    assert_three_counts_agree(stack)


def test_the_death_of_the_supervisor_takes_all_with_it_and_the_next_up_recovers(stack: Stack) -> None:
    settled(stack)
    before = stack.stages_at_once()
    state = json.loads((stack.folder / ".nightwire" / "state.json").read_text())
    os.kill(state["supervisor"]["pid"], signal.SIGKILL)
    pids = {one["pid"]: one["started"] for one in state["processes"]}
    until(lambda: all(process_started(pid) != started for pid, started in pids.items()), "all are gone", 60)
    stack.run("up", *MORE)
    assert stack.stages_at_once() == before
    assert_three_counts_agree(stack)


NOT_HERE = {
    "Refused": "a simulated alert is never refused; producer/tests/writing/test_writer.py has some that are",
    "Kept out": "below 2,048 connections nobody of this machine is; gateway-vtp/tests/net/test_server.py",
    "Held back by a quota": "only who enters with a password has a quota",
    "Pass nothing": "it takes three days; monitoring/tests/config/nights.test.yml lets them go by",
}
"""Panels that have no data after this run, and why."""


def shown(row: Row) -> Iterator[tuple[str, str]]:
    """Yield title and query of what must have data."""
    for panel in row.panels:
        if panel.title not in NOT_HERE:
            yield from ((panel.title, query) for query in panel.queries.values())


def answer(port: str, query: str) -> list[float]:
    """Return the numbers that Prometheus answers."""
    said = PAGES.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query})
    assert said.status_code == httpx.codes.OK, said.text
    values = (float(one["value"][1]) for one in said.json()["data"]["result"])
    return [value for value in values if not math.isnan(value)]


class Eventful:
    """Lets everything happen that a panel shows.

    Args:
        stack: Where.
        port: Of its Prometheus.
    """

    def __init__(self, stack: Stack, port: str) -> None:
        self._stack, self._port = stack, port
        self._survey = SurveyKafka(stack.kafka)
        self._at = stack.status()["endpoints"]

    @contextmanager
    def happening(self) -> Iterator[None]:
        ours = ["simulate", "--visits", "0", "--alerts", "100", "--interval", "3s"]
        theirs = ["ingest", "--survey", "ztf", "--from", self._stack.kafka]
        self._survey.make("ztf_20260301_programid1", 1)
        with (
            self.watched(*ours),
            self.watched(*theirs, "--topic-pattern", "ztf_{date}_programid1"),
        ):
            at_once = (self.a_broker_reads, self.telescopes_talk, self.filters_misbehave, self.a_flow_posts)
            with ThreadPoolExecutor(len(at_once)) as pool:
                for one in [pool.submit(act) for act in at_once]:
                    one.result()
            yield

    @contextmanager
    def watched(self, *words: str) -> Iterator[None]:
        """Run a process, which Prometheus finds by the directory."""
        child = self._stack.start(*words, "--metrics-port", str(free_port()))
        try:
            yield
            assert child.poll() is None, child.communicate()
        finally:
            child.terminate()
            child.communicate(timeout=60)

    def a_broker_reads(self) -> None:
        ensure_topics(self._stack.kafka, [settings("returns.fink")])
        order = ["--owner", "fink", "--output", "broker.fink.bright", "--survey", "sim", "--cap", "1"]
        self._stack.run("filter", "submit", "--name", "bright", "--sql", "snr > 100", *order)
        until(lambda: bool(answer(self._port, "nightwire_visit_alerts")), "a visit ends")
        self._stack.run("subscribe", "alerts.sim", "--group", "fink.live", "--no-follow")

    def a_flow_posts(self) -> None:
        """Post what passes a filter to nobody; and ask for what passed."""
        path = self._stack.folder / "told.py"
        path.write_text("def keep(alert):\n    return alert.id % 40 == 0\n")
        told = [str(path), "--name", "told", "--survey", "sim", "--notify", "http://hook.invalid/"]
        self._stack.run("filter", "submit", *told)
        for url in (f"{self._at['archive']}/surveys", self._at["portal"]):
            assert httpx.get(url).status_code == httpx.codes.OK

    def telescopes_talk(self) -> None:
        """Send events to a subscriber, and nonsense to the gateway."""
        listener = Subscriber(int(self._at["vtp_subscribers"].rpartition(":")[2]))
        listener.start()
        until(
            lambda: answer(self._port, 'nightwire_gateway_connections{role="subscriber"}') == [1.0], "it came"
        )
        self._stack.run("send", "--samples", "9", "--first-sample", str(self._stack.records("voevents")))
        until(lambda: bool(listener.ivorns), "it got an event")
        host, _, port = self._at["vtp_authors"].rpartition(":")
        for nonsense in (b"<not XML", b"\xff" * 8):
            with socket.create_connection((host, int(port)), timeout=30) as author:
                author.sendall(struct.pack(">I", len(nonsense)) + nonsense if b"<" in nonsense else nonsense)
                assert author.recv(1)

    def filters_misbehave(self) -> None:
        """Submit filters that cannot be tried, for nothing came yet of that survey; then it
        comes.
        """
        for name, code in MISBEHAVE.items():
            path = self._stack.folder / f"{name}.py"
            path.write_text(code)
            self._stack.run("filter", "submit", str(path), "--name", name, "--survey", "ztf")
        useless = [(b"no alert", 0), (container([], 7), 0)]
        self._survey.send("ztf_20260301_programid1", useless)
        numbers = count(1)

        def suspended() -> bool:
            self._survey.send("ztf_20260301_programid1", [(container([next(numbers)], 7), 0)])
            return bool(answer(self._port, "nightwire_filters_suspensions_total"))

        until(suspended, "the one that does not end is suspended", tick=1)


MISBEHAVE = {
    "zero": "def keep(alert):\n    return 1 / (alert.id - alert.id) > 0\n",
    "loop": "def keep(alert):\n    while alert.id:\n        pass\n    return True\n",
}
"""Filters: one fails on each alert, one does not end."""


@pytest.mark.prometheus
def test_every_panel_of_every_dashboard_has_data(stack: Stack) -> None:
    """Last, for it lets filters misbehave."""
    port = stack.status()["endpoints"]["prometheus"].rpartition(":")[2].strip("/")
    titles = {panel.title for row in ALL for panel in row.panels}
    assert set(NOT_HERE) <= titles
    with Eventful(stack, port).happening():
        for title, query in (one for row in ALL for one in shown(row)):
            until(lambda: bool(answer(port, query)), f"{title}: {query}")  # noqa: B023


def test_without_a_stack_the_verbs_say_what_to_do(tmp_path: Path) -> None:
    alone = Stack(tmp_path)
    assert "nightwire up" in alone.run("topics", status=1)
    assert "nightwire up" in alone.run("status", status=1)
    assert "Nothing runs" in alone.start("down").communicate(timeout=60)[1]
