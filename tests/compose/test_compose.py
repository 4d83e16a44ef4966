"""The compose stack, brought up and loaded for real; `make test-compose` runs this.

Alerts and VOEvents come in from outside the network and are read from outside, through the published ports;
the ids must be the same, and the accounts must agree.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from lxml import etree

from nightwire.consumers import AlertReader
from nightwire.core.stack import free_port
from nightwire.gateway import FrameDecoder, Transport, encode_frame, encode_transport, read_transport
from nightwire.gateway.samples import samples
from nightwire.monitoring._panel import queries
from nightwire.monitoring._panels import ALL
from nightwire.producer import AlertWriter, Sky, VisitLog, Visits
from nightwire.schemas import SIM_ALERT_ID, sim_alert_schema

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[2]
ALERTS, EVENTS = 1000, 100
ROLES = ("observation", "prediction")
"""What feeds give unless they are told otherwise."""
SIM = "alerts.sim"
SERVICES = {"kafka-1", "kafka-2", "kafka-3", "schema-registry", "gateway", "filters", "producer", "consumer"}
SERVICES |= {"exporter", "prometheus", "alertmanager", "node-exporter"}
PATIENCE = 400.0  # [s]  two cores carry everything, and perhaps others' work


@dataclass(frozen=True)
class Stack:
    """A running compose stack, and the way into it."""

    environment: dict[str, str]

    def port(self, name: str) -> int:
        return int(self.environment[name])

    @property
    def kafka(self) -> str:
        return ",".join(f"127.0.0.1:{self.port(f'KAFKA_PORT_{number}')}" for number in (1, 2, 3))

    @property
    def registry(self) -> str:
        return f"http://127.0.0.1:{self.port('REGISTRY_PORT')}"

    def compose(self, *words: str, timeout: float = 1000.0) -> str:
        project = ["docker", "compose", "--project-name", "nightwire-test", "--env-file", ".env.example"]
        done = subprocess.run(
            [*project, *words],
            cwd=ROOT,
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"docker compose {' '.join(words)}: {done.stderr[-3000:]}"
        return done.stdout

    def services(self) -> dict[str, dict[str, Any]]:
        lines = self.compose("ps", "--all", "--format", "json").splitlines()
        return {one["Service"]: one for one in map(json.loads, lines)}

    def nightwire(self, *words: str) -> str:
        """Run a verb outside the network."""
        where = {"KAFKA_BOOTSTRAP_SERVERS": self.kafka, "NIGHTWIRE_SCHEMA_REGISTRY": self.registry}
        command = [sys.executable, "-m", "nightwire.core.cli", *words]
        done = subprocess.run(command, env=os.environ | where, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (
            f"nightwire {' '.join(words)}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        )
        return done.stdout

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        url = f"http://127.0.0.1:{self.port('PROMETHEUS_PORT')}/api/v1/query"
        found: list[dict[str, Any]] = httpx.get(url, params={"query": query}).json()["data"]["result"]
        return found


PORTS: tuple[str, ...] = ("KAFKA_PORT_1", "KAFKA_PORT_2", "KAFKA_PORT_3", "REGISTRY_PORT", "VTP_AUTHORS_PORT")
PORTS += ("VTP_SUBSCRIBERS_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT", "GRAFANA_PORT")


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """Bring everything up but what has no image here, with a small simulated stream; take it down again."""
    ports = {name: str(free_port()) for name in PORTS}
    one = Stack(ports | {"COMPOSE_PROFILES": "", "STREAM_ALERTS": "100", "STREAM_INTERVAL": "20s"})
    try:
        started = time.monotonic()
        one.compose("up", "--detach", "--wait", "--wait-timeout", "900")
        sys.stderr.write(f"up after {time.monotonic() - started:.0f} s\n")
        yield one
    finally:
        if not os.environ.get("NIGHTWIRE_KEEP"):
            one.compose("down", "--volumes", "--timeout", "20")


@pytest.fixture(scope="module")
def quiet(stack: Stack) -> Stack:
    """Submit a filter, let the simulated survey play a visit, then stop it: what comes now is the test's."""
    notebook = ROOT / "filters" / "notebooks" / "bright-transient.ipynb"
    stack.nightwire("filter", "submit", str(notebook), "--name", "bright", "--owner", "demo")
    await_(lambda: stages(stack).get("producer", {}).get("delivered", 0) >= 100, "a visit of the stream")
    stack.compose("stop", "producer")
    return stack


def await_(holds: Any, what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}"
        time.sleep(0.5)  # polling, not hoping


def stages(stack: Stack) -> dict[str, dict[str, int]]:
    said = json.loads(stack.nightwire("accounts", "--json"))
    assert said["discrepancies"] == []
    return {one["stage"]: one for one in said["stages"]}


def test_everything_runs_and_nothing_listens_beyond_this_machine(stack: Stack) -> None:
    found = stack.services()
    assert set(found) == SERVICES
    assert {name for name, one in found.items() if one["State"] != "running"} == set()
    assert {name for name, one in found.items() if one["Health"] not in ("healthy", "")} == set()
    published = [port for one in found.values() for port in one["Publishers"] if port["PublishedPort"]]
    assert published
    assert {port["URL"] for port in published} == {"127.0.0.1"}


def test_no_container_is_root_or_may_become_it(stack: Stack) -> None:
    names = [one["Name"] for one in stack.services().values()]
    said = subprocess.run(["docker", "inspect", *names], capture_output=True, text=True, check=True).stdout
    for one in json.loads(said):
        assert one["Config"]["User"] not in ("", "root", "0"), one["Name"]
        assert one["HostConfig"]["CapDrop"] == ["ALL"], one["Name"]
        assert one["HostConfig"]["ReadonlyRootfs"], one["Name"]
        assert one["HostConfig"]["Memory"] > 0, one["Name"]


def test_the_simulated_survey_stops_cleanly(quiet: Stack) -> None:
    assert quiet.services()["producer"]["ExitCode"] == 0


def test_a_thousand_alerts_come_out_as_they_went_in(quiet: Stack) -> None:
    now = datetime.now(UTC)
    log = VisitLog(4711, now)
    number = int(now.timestamp())
    log.open(now, number)
    sent: list[int] = []
    connected = AlertWriter.connect(
        "sim", sim_alert_schema(), schema_id=SIM_ALERT_ID, bootstrap=quiet.kafka, registry=quiet.registry
    )
    with connected as writer, writer.visit(number) as visit:
        for alert in Visits(Sky(4711, ALERTS), log).alerts():
            visit.write(alert)
            sent.append(alert["diaSourceId"])
    assert len(set(sent)) == ALERTS

    with AlertReader(
        SIM, last=ALERTS, follow=False, bootstrap=quiet.kafka, registry=quiet.registry
    ) as reader:
        got = [received.alert["diaSourceId"] for received in reader]
    assert sorted(got) == sorted(sent)

    lines = quiet.nightwire("subscribe", SIM, "--last", str(ALERTS), "--no-follow", "--format", "json")
    shown = [json.loads(line)["alert"]["diaSourceId"] for line in lines.splitlines()]
    assert sorted(shown) == sorted(sent)


class Subscriber(threading.Thread):
    """A VTP subscriber outside the network: acknowledges every event, and remembers its IVORN."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.ivorns: list[str] = []
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)

    def run(self) -> None:
        frames = FrameDecoder()
        with closing(self._socket):
            while data := self._receive():
                frames.receive(data)
                for document in frames:
                    self._answer(etree.fromstring(document))

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(1 << 16)
        except OSError:
            return b""

    def _answer(self, root: etree._Element) -> None:
        if root.tag.endswith("VOEvent"):
            self.ivorns.append(str(root.get("ivorn")))
            answer = Transport("ack", str(root.get("ivorn")), "ivo://outside/subscriber")
        else:
            heard = read_transport(root)
            if heard.role != "iamalive":
                return
            answer = Transport("iamalive", heard.origin, "ivo://outside/subscriber")
        self._socket.sendall(encode_frame(encode_transport(answer, datetime.now(UTC))))


def observed() -> list[str]:
    """Return the samples that a feed gives to whoever asks for nothing else: observations and predictions."""
    roots = [etree.fromstring(document) for _, document in samples(EVENTS)]
    return sorted(str(root.get("ivorn")) for root in roots if root.get("role") in ROLES)


def test_of_a_hundred_voevents_a_subscriber_gets_what_is_no_test(quiet: Stack) -> None:
    subscriber = Subscriber(quiet.port("VTP_SUBSCRIBERS_PORT"))
    subscriber.start()
    query = 'nightwire_gateway_connections{role="subscriber"}'
    await_(
        lambda: any(one["value"][1] == "1" for one in quiet.prometheus(query)), "the subscriber is connected"
    )
    to = f"127.0.0.1:{quiet.port('VTP_AUTHORS_PORT')}"
    receipts = json.loads(quiet.nightwire("send", "--to", to, "--samples", str(EVENTS), "--json"))["results"]
    assert {one["verdict"] for one in receipts} == {"ack"}
    assert len({one["ivorn"] for one in receipts}) == EVENTS
    expected = observed()
    await_(lambda: len(subscriber.ivorns) >= len(expected), "the subscriber has every event")
    assert sorted(subscriber.ivorns) == expected


def test_in_is_out_at_every_stage(quiet: Stack) -> None:
    delivered = stages(quiet)["producer"]["delivered"]
    assert delivered >= ALERTS + 100
    await_(lambda: stages(quiet).get("filters", {}).get("read", 0) >= delivered, "every alert is judged")
    found = stages(quiet)
    assert found["filters"]["read"] == delivered
    assert found["filter.demo.bright"]["read"] >= ALERTS
    assert found["gateway"]["delivered"] == EVENTS


def test_the_consumer_catches_up(quiet: Stack) -> None:
    query = 'nightwire_consumer_lag_records{group="compose-consumer", topic="alerts.sim"}'
    await_(lambda: [one["value"][1] for one in quiet.prometheus(query)] == ["0"], "the consumer has no lag")


def test_every_panel_has_data(quiet: Stack) -> None:
    for query in queries(ALL, rare=False):
        await_(lambda query=query: bool(quiet.prometheus(query)), query)
    assert {one["value"][1] for one in quiet.prometheus("nightwire:missing")} == {"0"}
    assert {one["value"][1] for one in quiet.prometheus("nightwire_kafka_brokers")} == {"3"}
    assert quiet.prometheus("node_filesystem_avail_bytes")


def test_an_alarm_reaches_alertmanager(quiet: Stack) -> None:
    """The producer was stopped: its page does not answer, which is an alarm."""
    url = f"http://127.0.0.1:{quiet.port('ALERTMANAGER_PORT')}/api/v2/alerts"

    def names() -> set[tuple[str, str]]:
        labels = [one["labels"] for one in httpx.get(url).json()]
        return {(one["alertname"], one.get("process", "")) for one in labels}

    await_(lambda: ("ProcessDown", "stream") in names(), "ProcessDown fires")
