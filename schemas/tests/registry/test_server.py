"""The registry's server on a real Kafka: several processes, with Kafka going and coming back."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import PAGES
from nightwire.core.stack import free_port
from nightwire.schemas import SIM_ALERT_ID
from tests._waiting import until

pytestmark = pytest.mark.kafka


class Server:
    """A registry in a process of its own."""

    def __init__(self, bootstrap: str, log: Path) -> None:
        self.port, self.metrics_port = free_port(), free_port()
        words = ["schema", "serve", "--bootstrap", bootstrap, "--port", str(self.port)]
        words += ["--metrics-port", str(self.metrics_port)]
        with log.open("wb") as out:
            command = [sys.executable, "-m", "nightwire.core.cli", *words]
            self.child = subprocess.Popen(command, stdout=out, stderr=out)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)

    def health(self) -> int:
        """Return the status of the health page."""
        return PAGES.get(f"http://127.0.0.1:{self.metrics_port}/health").status_code

    def post(self, subject: str, name: str, **more: Any) -> httpx.Response:
        """Register a schema."""
        schema = json.dumps({"type": "record", "name": name, "fields": []})
        return self.http.post(f"/subjects/{subject}/versions", json={"schema": schema, **more})

    def stop(self) -> int:
        """Ask it to leave; return its exit code."""
        self.http.close()
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(60)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Server]]:
    """Yield a function that starts a server and waits until it is healthy."""
    servers: list[Server] = []

    def begin(bootstrap: str) -> Server:
        server = Server(bootstrap, tmp_path / f"log{len(servers)}")
        servers.append(server)
        until(lambda: server.health() == 200, "it is healthy", 120)
        return server

    yield begin
    for server in servers:
        server.stop()


def test_it_leaves_with_exit_code_zero_on_sigterm(kafka: str, start: Callable[[str], Server]) -> None:
    server = start(kafka)
    assert server.http.get("/").json() == {}
    page = PAGES.get(f"http://127.0.0.1:{server.metrics_port}/metrics").text
    assert "nightwire_schemas_ready 1.0" in page
    assert 'nightwire_schemas_requests_total{method="GET",status="200"} 1.0' in page
    assert server.stop() == 0


def test_unknown_addresses_are_answered_in_json(kafka: str, start: Callable[[str], Server]) -> None:
    server = start(kafka)
    assert server.http.get("/nonsense").json()["error_code"] == 404
    assert server.http.get("/associations/resources/-/topic").status_code == 404
    assert server.http.post("/subjects/a/versions", content=b"x" * (5 << 20)).status_code == 413


def test_servers_on_one_kafka_agree(kafka: str, start: Callable[[str], Server]) -> None:
    """Both get twenty new schemas at the same time: forty different ids, and both know all."""
    servers = [start(kafka), start(kafka)]
    run = os.urandom(4).hex()
    names = [f"r{run}x{number}" for number in range(20)]

    def register(at: int) -> list[int]:
        return [servers[at].post(f"{name}.{at}-value", f"{name}x{at}").json()["id"] for name in names]

    with ThreadPoolExecutor(2) as pool:
        given = [number for ids in pool.map(register, range(2)) for number in ids]
    assert len(set(given)) == 40
    for server in servers:
        for number in given:
            until(lambda: server.http.get(f"/schemas/ids/{number}").status_code == 200, str(number), 120)  # noqa: B023
    first, second = ([s.http.get(f"/schemas/ids/{n}").json() for n in given] for s in servers)
    assert first == second


def test_what_was_registered_is_there_after_a_restart(kafka: str, start: Callable[[str], Server]) -> None:
    subject = f"alerts.s{os.urandom(4).hex()}-value"
    server = start(kafka)
    given = server.post(subject, "kept").json()
    server.stop()
    again = start(kafka)
    assert again.http.get(f"/subjects/{subject}/versions/latest").json()["id"] == given["id"]


def test_while_kafka_is_away_it_goes_on_reading_and_then_writes_again(
    fresh_broker: Any, start: Callable[[str], Server]
) -> None:
    server = start(fresh_broker.bootstrap)
    assert server.post("alerts.lsst-value", "a", id=1100).json() == {"id": 1100}
    fresh_broker.stop()
    assert server.http.get("/schemas/ids/1100").status_code == 200
    assert server.http.get(f"/schemas/ids/{SIM_ALERT_ID}").status_code == 200
    refused = server.post("alerts.lsst-value", "b", id=1101)
    assert (refused.status_code, refused.json()["error_code"]) == (503, 50302)
    assert "nothing can be written now: Kafka at" in refused.json()["message"]
    assert server.health() == 200
    fresh_broker.start()
    until(lambda: server.post("alerts.lsst-value", "b", id=1101).json() == {"id": 1101}, "it writes", 120)
    assert server.http.get("/subjects/alerts.lsst-value/versions").json() == [1, 2]
