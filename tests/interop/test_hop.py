"""hop-client reads alerts with their fields, from topics that are set to containers and hop's
headers.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.kafka import read_to_end
from nightwire.core.stack import Broker, free_port
from nightwire.schemas.wire import read_container
from tests.interop._page import blocks, line, nightwire, run, write_as_rubin

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

TESTS_TOO = ", ignoretest=False"
"""What the page tells hop, so that it reads simulated alerts."""


@dataclass(frozen=True)
class Containers:
    """A Kafka with ten alerts in `alerts.sim`, and the same ones in `alerts.lsst` as if they were
    real.

    Attributes:
        where: What the environment of a reader says.
        folder: To run it in.
    """

    where: dict[str, str]
    folder: Path

    def headers(self, topic: str) -> list[dict[str, bytes]]:
        return [dict(message.headers() or ()) for message in self._messages(topic)]

    def alerts(self, topic: str) -> list[dict[str, Any]]:
        values = [message.value() or b"" for message in self._messages(topic)]
        return [one.record for value in values for one in read_container(value)]

    def read_by_hop(self, topic: str, *, tests_too: bool) -> list[str]:
        """Return the lines that the page's code prints, told to read *topic*."""
        (code,) = blocks("hop-client", "python")
        code = code.replace("alerts.sim", topic).replace(TESTS_TOO, TESTS_TOO if tests_too else "")
        return sorted(run("python", code, self.where, self.folder).splitlines())

    def _messages(self, topic: str) -> Iterator[Any]:
        return read_to_end(self.where["KAFKA_BOOTSTRAP_SERVERS"], [topic])


@pytest.fixture(scope="module")
def containers(
    tmp_path_factory: pytest.TempPathFactory, serve_registry: Callable[[str], AbstractContextManager[str]]
) -> Iterator[Containers]:
    """Yield a Kafka whose topics of alerts the page's file sets to containers."""
    folder = tmp_path_factory.mktemp("hop")
    (simulated,) = blocks("hop-client", "toml")
    (folder / "topics.toml").write_text(simulated + simulated.replace("sim", "lsst"))
    broker = Broker(folder / "kafka", port=free_port(), controller=free_port())
    broker.start()
    try:
        with serve_registry(broker.bootstrap) as url:
            where = {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "NIGHTWIRE_SCHEMA_REGISTRY": url}
            nightwire("topics apply topics.toml", where, folder)
            one = Containers(where | {"NIGHTWIRE_TOPICS": str(folder / "topics.toml")}, folder)
            nightwire("simulate --alerts 10", one.where, folder)
            write_as_rubin(one.alerts("alerts.sim"), folder / "night.avro")
            nightwire("replay night.avro --survey lsst", one.where, folder)
            yield one
    finally:
        broker.stop()


def test_hop_reads_simulated_alerts_with_their_fields(containers: Containers) -> None:
    lines = sorted(map(line, containers.alerts("alerts.sim")))
    assert len(lines) == 10
    assert containers.read_by_hop("alerts.sim", tests_too=True) == lines


def test_hop_passes_over_simulated_alerts_unless_told(containers: Containers) -> None:
    assert containers.read_by_hop("alerts.sim", tests_too=False) == []


def test_hop_takes_other_alerts_for_real(containers: Containers) -> None:
    lines = sorted(map(line, containers.alerts("alerts.sim")))
    assert containers.read_by_hop("alerts.lsst", tests_too=False) == lines


def test_headers_are_those_that_hop_writes_itself(containers: Containers) -> None:
    for headers in containers.headers("alerts.sim"):
        assert (headers["_format"], headers["_test"], len(headers["_id"])) == (b"avro", b"true", 16)
        assert headers["visit"].isdigit()
    for headers in containers.headers("alerts.lsst"):
        assert headers["_format"] == b"avro"
        assert "_test" not in headers


@pytest.mark.kcat
def test_kcat_shows_hops_headers_beside_ours(containers: Containers) -> None:
    shown = run("sh", blocks("kcat", "sh")[0], containers.where, containers.folder)
    for mark in ("visit=", "_format=avro", "_test=true"):
        assert shown.count(mark) == 10
