"""The portal's process: it shows what Kafka has, what the archive keeps, and says who is away."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka import OFFSET_END, TopicPartition

from archive.tests.conftest import serving as archiving
from nightwire.core.kafka import Writer, admin, ensure_topics, producer
from nightwire.core.runtime import free_port
from nightwire.core.stack import Broker
from nightwire.schemas.topics import settings
from portal.tests.sample import SIM, message, sim_alert
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def until_page(url: str, holds: Callable[[httpx.Response], object]) -> None:
    """Wait until something *holds* of the answer of *url*."""
    until(lambda: holds(httpx.get(url, timeout=30)), url)


@contextmanager
def looking(kafka: str, registry: str, archive: str, folder: Path) -> Iterator[str]:
    """Run `nightwire portal serve` within the block; yield its address."""
    port, page, log = free_port(), free_port(), folder / "portal.log"
    words = ["--bootstrap", kafka, "--registry", registry, "--archive", archive, "--port", str(port)]
    command = [sys.executable, "-m", "nightwire.core.cli", "portal", "serve", *words]
    with log.open("ab") as out:
        child = subprocess.Popen([*command, "--metrics-port", str(page)], stdout=out, stderr=out)
    try:
        until_page(f"http://127.0.0.1:{page}/health", lambda answer: answer.status_code == 200)
        yield f"http://127.0.0.1:{port}"
        metrics = httpx.get(f"http://127.0.0.1:{page}/metrics").text
        assert "nightwire_portal_requests_total{" in metrics
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) in (0, -signal.SIGTERM), log.read_text()
    finally:
        child.kill()
        child.wait()


def forget(kafka: str) -> None:
    """Let Kafka delete all alerts."""
    client, ends = admin(kafka), [TopicPartition(SIM, number, OFFSET_END) for number in range(4)]
    for done in client.delete_records(ends).values():
        done.result(30)


def test_what_kafka_has_forgotten_is_shown_from_the_archive(
    fresh_broker: Broker,
    serve_registry: Callable[[str], AbstractContextManager[str]],
    tmp_path: Path,
) -> None:
    kafka, port = fresh_broker.bootstrap, free_port()
    names = (SIM, "accounts", "dead-letters", "_schemas", "directory")
    ensure_topics(kafka, [settings(name) for name in names])
    writer = Writer(producer(kafka))
    for number in range(1, 31):
        writer.write(SIM, message(sim_alert(number, history=2)), key=b"%d" % number)
    writer.flush()
    past = f"http://127.0.0.1:{port}"
    count = f"{past}/query?sql=SELECT+count(*)+AS+n+FROM+sim"
    with serve_registry(kafka) as registry, ExitStack() as keeping:
        words = ("--every", "300ms", "--port", str(port))
        keeping.enter_context(archiving(tmp_path / "archive", kafka, registry, *words))
        until_page(count, lambda answer: answer.status_code == 200 and answer.json()[0]["n"] == 30)
        with looking(kafka, registry, past, tmp_path) as url:
            until_page(f"{url}/api/alerts", lambda answer: len(answer.json()["alerts"]) == 30)
            forget(kafka)
            assert httpx.get(f"{url}/api/object/sim/1007", timeout=30).json()["missing"] == ""
        with looking(kafka, registry, past, tmp_path) as url:
            assert httpx.get(f"{url}/api/alerts").json() == {"alerts": []}
            check_the_past(url)
            keeping.close()
            answer = httpx.get(f"{url}/object/sim/1007", timeout=30)
            assert (answer.status_code, "archive does not answer" in answer.text) == (503, True)
            assert "archive does not answer" in httpx.get(f"{url}/find?q=10.507+-20.25", timeout=30).text
            fresh_broker.kill()
            until_page(url, lambda answer: "Kafka does not answer" in answer.text)


def check_the_past(url: str) -> None:
    """An object of which Kafka has nothing has its stamps, curve and record."""
    found = httpx.get(f"{url}/api/object/sim/1007", timeout=30).json()
    (alert,) = found["alerts"]
    assert (alert["id"], len(found["curve"]), found["missing"]) == ("7", 4, "")
    place = "/".join(str(alert[name]) for name in ("topic", "partition", "offset"))
    assert httpx.get(f"{url}/api/stamps/{place}", timeout=30).content.startswith(b"\xff\xd8\xff")
    assert httpx.get(f"{url}/api/record/{place}", timeout=30).json()["alert"]["diaSourceId"] == 7
    assert httpx.get(f"{url}/object/sim/7", timeout=30).status_code == 200
    near = httpx.get(f"{url}/api/find?q=10.507+-20.25+r=5", timeout=30).json()["near"]
    assert [one["id"] for one in near] == ["7", "6", "8"] or [one["id"] for one in near] == ["7", "8", "6"]
    assert [one["id"] for one in httpx.get(f"{url}/api/find?q=1007", timeout=30).json()["named"]] == ["7"]
    assert httpx.get(f"{url}/object/sim/424242", timeout=30).status_code == 404
