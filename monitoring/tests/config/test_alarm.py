"""A dropped alert, all the way: account, exporter, Prometheus, Alertmanager, a webhook."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import PAGES
from monitoring.tests.processes import await_observation, exporting, running
from nightwire.core.accounting import Account, write_account
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.core.stack import Broker, free_port
from nightwire.monitoring.config import alertmanager_config
from nightwire.schemas.topics import settings
from tests._serving import answering
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.prometheus, pytest.mark.timeout(300)]

SIM = "alerts.sim"


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Listen for alerts; yield where, and what came so far."""
    came: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    with answering(Hook) as url:
        yield f"{url}/night", came


@contextmanager
def alertmanager(folder: Path, url: str) -> Iterator[str]:
    """Run Debian's Alertmanager on our configuration; yield its address."""
    (folder / "alertmanager.yml").write_text(alertmanager_config(url))
    at = f"127.0.0.1:{free_port()}"
    words = [f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'data'}"]
    words += [f"--web.listen-address={at}", "--cluster.listen-address=", "--log.level=warn"]
    with (folder / "alertmanager.log").open("wb") as log:
        child = subprocess.Popen(["prometheus-alertmanager", *words], stdout=log, stderr=log)
    try:
        until(lambda: asked(f"http://{at}/-/ready") is not None, "Alertmanager is ready")
        yield at
    finally:
        child.terminate()
        child.wait(60)


def asked(url: str, **params: str) -> httpx.Response | None:
    try:
        said = PAGES.get(url, params=params)
    except httpx.TransportError:
        return None
    return said if said.status_code == httpx.codes.OK else None


class Night:
    """A Kafka in which ten alerts were written and judged, and its Prometheus."""

    def __init__(self, bootstrap: str, prometheus: int) -> None:
        self._writer, self._prometheus = Writer(producer(bootstrap)), prometheus
        ensure_topics(bootstrap, [settings(name) for name in (SIM, "accounts")])
        for number in range(10):
            self._writer.write(SIM, b"an alert", partition=0, key=str(number).encode())
        self.account("producer", "visit/sim", read=10, delivered=10)

    def account(self, stage: str, source: str, **classes: Any) -> None:
        write_account(self._writer, Account(stage, source, 0, 0, 9, **classes))
        self._writer.flush()

    def value(self, query: str) -> float | None:
        """Return the one number that Prometheus answers; None while it has none."""
        said = asked(f"http://127.0.0.1:{self._prometheus}/api/v1/query", query=query)
        found = said.json()["data"]["result"] if said else []
        return float(found[0]["value"][1]) if len(found) == 1 else None


def test_one_dropped_alert_turns_the_night_red_and_somebody_is_told(
    fresh_broker: Broker, tmp_path: Path
) -> None:
    kafka, pages, port = fresh_broker.bootstrap, free_port(), free_port()
    night = Night(kafka, port)
    night.account("filters", SIM, read=10, delivered=3, rejected={"no-filter-passed": 7})
    with webhook() as (url, came), alertmanager(tmp_path, url) as alarms, exporting(kafka, pages):
        await_observation(pages, 0.0)
        words = ["--state", str(tmp_path / "prometheus"), "--port", str(port), "--interval", "0.5"]
        words += ["--target", f"exporter=127.0.0.1:{pages}", "--alertmanager", alarms]
        with running("prometheus", *words):
            until(lambda: night.value("nightwire:missing") == 0, "the night is green")
            assert came == []
            night.account("filters", SIM, read=10, delivered=2, rejected={"no-filter-passed": 7})
            until(lambda: night.value("nightwire:missing") == 1, "the night is red")
            until(lambda: night.value('ALERTS{alertname="InIsNotOut", alertstate="firing"}') == 1, "it fires")
            until(lambda: told(came, "firing"), "somebody is told")
            night.account("filters", SIM, read=10, delivered=3, rejected={"no-filter-passed": 7})
            until(lambda: night.value("nightwire:missing") == 0, "the night is green again")
    (alert,) = [one for message in came for one in message["alerts"] if of_ours(one) and firing(one)][:1]
    assert alert["labels"]["stage"] == "filters"
    assert alert["labels"]["severity"] == "critical"
    assert alert["annotations"]["summary"] == "filters: 1 of the records that it read are in no class"
    assert alert["annotations"]["description"].startswith("`nightwire accounts`")
    assert alert["annotations"]["runbook"] == "docs/operator/trouble.md#inisnotout"


def told(came: list[dict[str, Any]], status: str) -> bool:
    return any(of_ours(one) and one["status"] == status for message in came for one in message["alerts"])


def of_ours(alert: dict[str, Any]) -> bool:
    return bool(alert["labels"]["alertname"] == "InIsNotOut")


def firing(alert: dict[str, Any]) -> bool:
    return bool(alert["status"] == "firing")
