"""What the filters' tests share: small alerts, a Kafka of their own, and an engine that runs in
it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from conftest import PAGES
from nightwire.core.kafka import Writer, ensure_topics, producer, read_to_end
from nightwire.core.stack import Broker, free_port
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, wire
from nightwire.schemas.topics import settings
from tests import _waiting as waiting

TOPICS = (
    "visits",
    "filters",
    "accounts",
    "dead-letters",
    "_schemas",
    "alerts.sim",
    "alerts.lsst",
    "alerts.ztf",
)


def blank(schema: Any, named: dict[str, Any]) -> Any:
    """Return the emptiest value that *schema* allows."""
    if isinstance(schema, list):
        return None if "null" in schema else blank(schema[0], named)
    if isinstance(schema, str):
        simple = {
            "string": "",
            "bytes": b"",
            "boolean": False,
            "float": 0.0,
            "double": 0.0,
            "int": 0,
            "long": 0,
        }
        return simple[schema] if schema in simple else blank(named[schema], named)
    named.setdefault(schema.get("name", ""), schema)
    if schema["type"] == "record":
        return {one["name"]: blank(one["type"], named) for one in schema["fields"]}
    if schema["type"] in ("array", "map"):
        return [] if schema["type"] == "array" else {}
    return schema["symbols"][0] if schema["type"] == "enum" else blank(schema["type"], named)


@pytest.fixture(scope="session")
def make_alert() -> Callable[..., dict[str, Any]]:
    """Return a function that makes a simulated alert of (number, flux [nJy])."""
    empty = blank(sim_alert_schema(), {})

    def make(number: int, flux: float = 100.0, **source: Any) -> dict[str, Any]:
        known = {**empty["diaSource"], "diaSourceId": number, "visit": 7, "psfFlux": flux, "psfFluxErr": 1.0}
        top = {"diaSourceId": number} if "diaSourceId" in empty else {}
        return {**empty, **top, "diaSource": {**known, "diaObjectId": 1 + number % 5, **source}}

    return make


@pytest.fixture(scope="session")
def encode(make_alert: Callable[..., dict[str, Any]]) -> Callable[..., bytes]:
    """Return a function that makes a record of a simulated alert, as it lies in Kafka."""
    codec = Codec(sim_alert_schema())
    return lambda number, flux=100.0, **source: wire.frame(
        SIM_ALERT_ID, codec.encode(make_alert(number, flux, **source))
    )


def until(true: Callable[[], Any], timeout: float = 60.0, why: Callable[[], str] = lambda: "") -> Any:
    """Return what *true* says once it is true; fail after *timeout* [s]."""
    return waiting.until(true, why, timeout)


@pytest.fixture(scope="session", name="until")
def until_fixture() -> Callable[..., Any]:
    """Return `until`."""
    return until


@dataclass
class Site:
    """A Kafka, a registry, and an engine that can be killed."""

    broker: Broker
    registry: str
    folder: Path
    port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""
        return self.broker.bootstrap

    @property
    def log(self) -> Path:
        """The engine's log."""
        return self.folder / "engine.log"

    def start(self, *words: str, state: str = "state") -> None:
        """Start the engine and wait until it judges.

        Args:
            words: More of its command line.
            state: Name of the folder of its state.
        """
        command = [
            sys.executable,
            "-m",
            "nightwire.core.cli",
            "filter",
            "run",
            "--bootstrap",
            self.bootstrap,
        ]
        command += ["--registry", self.registry, "--state", str(self.folder / state)]
        with self.log.open("ab") as out:
            self.child = subprocess.Popen(
                [*command, "--metrics-port", str(self.port), "--batch", "200", *words],
                stdout=out, stderr=out, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        until(self.healthy, 240, lambda: self.log.read_text()[-3000:])

    def healthy(self) -> bool:
        """Return whether the engine says that it judges."""
        assert self.child is not None
        assert self.child.poll() is None, self.log.read_text()[-3000:]
        try:
            return PAGES.get(f"http://127.0.0.1:{self.port}/health").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """Kill the engine's driver as a crash would."""
        assert self.child is not None
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.wait()

    def stop(self) -> int:
        """Ask the engine to leave; return its exit status."""
        assert self.child is not None
        self.child.terminate()
        return self.child.wait(60)

    def write(self, topic: str, values: Mapping[bytes, bytes] | list[bytes]) -> None:
        """Write records (by key, or keyed by their number) and wait for Kafka."""
        writer = Writer(producer(self.bootstrap))
        items = (
            values.items()
            if isinstance(values, Mapping)
            else ((str(i).encode(), v) for i, v in enumerate(values))
        )
        for key, value in items:
            writer.write(topic, value, key=key)
        writer.flush()

    def read(self, topic: str) -> list[Any]:
        """Return all records of a topic."""
        return list(read_to_end(self.bootstrap, [topic]))

    def nightwire(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command here: a process takes a second of CPU."""
        from nightwire.core.cli import main

        done = CliRunner().invoke(main, [*arguments, "--bootstrap", self.bootstrap])
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    def submit(self, name: str, code: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Submit *code* as a script."""
        file = self.folder / f"{name}.py"
        file.write_text(code)
        return self.nightwire("filter", "submit", str(file), "--name", name, *options)


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, serve_registry: Callable[[str], AbstractContextManager[str]]
) -> Iterator[Site]:
    """Yield a Kafka with a registry, for one module alone; no engine runs yet."""
    folder = tmp_path_factory.mktemp("site")
    broker = Broker(folder / "kafka", port=free_port(), controller=free_port())
    broker.start()
    ensure_topics(broker.bootstrap, [settings(name) for name in TOPICS])
    with serve_registry(broker.bootstrap) as url:
        site = Site(broker, url, folder)
        yield site
        if site.child is not None and site.child.poll() is None:
            site.child.kill()
            site.child.wait()
    broker.stop()
