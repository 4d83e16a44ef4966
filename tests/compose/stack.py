"""The compose stack as tests see it: from outside the network, through the published ports."""

import json
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from socket import create_connection
from typing import Any

import httpx
from lxml import etree

from nightwire.core.tls.site import Site
from nightwire.gateway import FrameDecoder, Transport, encode_frame, encode_transport, read_transport
from nightwire.producer import AlertWriter, Sky, VisitLog, Visits
from nightwire.schemas import SIM_ALERT_ID, sim_alert_schema
from tests._waiting import until

ROOT = Path(__file__).parents[2]
NAMES = re.findall(r"^([A-Z_]+PASSWORD)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
PASSWORDS = {name: secrets.token_urlsafe(24) for name in NAMES}
"""Kafka refuses those of `.env.example`."""
OPERATOR = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "KAFKA_SASL_MECHANISM": "PLAIN",
    "KAFKA_SASL_USERNAME": "nightwire.stack",
    "KAFKA_SASL_PASSWORD": PASSWORDS["KAFKA_PASSWORD"],
}
SKYMAPS = "127.0.0.1:8000"
"""Where the portal's container has a skymap: a test puts it there."""
PATIENCE = 400.0  # [s]  two cores carry everything, and perhaps others' work


@dataclass(frozen=True)
class Stack:
    """A running compose stack, and the way into it.

    Attributes:
        environment: What compose is told.
        files: Its files.
        site: Its authority and certificates.
    """

    environment: dict[str, str]
    files: tuple[Path, ...]
    site: Site

    def port(self, name: str) -> int:
        """Return a published port."""
        return int(self.environment[name])

    @property
    def kafka(self) -> str:
        """Addresses of the three brokers."""
        return ",".join(f"127.0.0.1:{self.port(f'KAFKA_PORT_{number}')}" for number in (1, 2, 3))

    @property
    def registry(self) -> str:
        """Address of the schema registry."""
        return f"http://127.0.0.1:{self.port('REGISTRY_PORT')}"

    @property
    def public(self) -> dict[str, str]:
        """How other machines find Kafka and the registry, by TLS alone."""
        return {
            "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{self.port('PUBLIC_KAFKA_1')}",
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SSL_CA_LOCATION": str(self.site.ca),
            "NIGHTWIRE_SCHEMA_REGISTRY": f"https://127.0.0.1:{self.port('PUBLIC_REGISTRY')}",
        }

    @property
    def doors(self) -> dict[str, str]:
        """Where verbs find Kafka, the registry and the directory."""
        directory, archive = (
            f"http://127.0.0.1:{self.port(f'{one}_PORT')}" for one in ("DIRECTORY", "ARCHIVE")
        )
        return {
            "KAFKA_BOOTSTRAP_SERVERS": self.kafka,
            "NIGHTWIRE_SCHEMA_REGISTRY": self.registry,
            "NIGHTWIRE_DIRECTORY": directory,
            "NIGHTWIRE_ARCHIVE_HTTP": archive,
        }

    def compose(self, *words: str, timeout: float = 1000.0) -> str:
        """Run `docker compose`, and return what it printed."""
        files = [word for file in self.files for word in ("--file", str(file))]
        project = ["docker", "compose", "--project-name", "nightwire-test", "--env-file", ".env.example"]
        done = subprocess.run(
            [*project, *files, *words],
            cwd=ROOT,
            env=os.environ | PASSWORDS | self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"docker compose {' '.join(words)}: {done.stderr[-3000:]}"
        return done.stdout

    def up(self) -> None:
        """Start everything, and wait until all of it is healthy."""
        try:
            self.compose("up", "--detach", "--wait", "--wait-timeout", "900")
        except AssertionError as error:
            sick = [name for name, one in self.services().items() if one["Health"] not in ("healthy", "")]
            raise AssertionError(f"{error}\n{self.compose('logs', '--tail', '40', *sick)}") from error

    def services(self) -> dict[str, dict[str, Any]]:
        """Return what compose says of each service."""
        lines = self.compose("ps", "--all", "--format", "json").splitlines()
        return {one["Service"]: one for one in map(json.loads, lines)}

    def nightwire(self, *words: str, user: Mapping[str, str] = OPERATOR) -> str:
        """Run a verb outside the network, as *user*, and return what it printed."""
        command = [sys.executable, "-m", "nightwire.core.cli", *words]
        environment = os.environ | self.doors | dict(user)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        said = f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
        assert done.returncode == 0, f"nightwire {' '.join(words)}: {said}"
        return done.stdout

    def stages(self) -> dict[str, dict[str, int]]:
        """Return the accounts by stage."""
        said = json.loads(self.nightwire("accounts", "--json"))
        assert said["discrepancies"] == []
        return {one["stage"]: one for one in said["stages"]}

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        """Return what Prometheus answers."""
        url = f"http://127.0.0.1:{self.port('PROMETHEUS_PORT')}/api/v1/query"
        found: list[dict[str, Any]] = httpx.get(url, params={"query": query}).json()["data"]["result"]
        return found


def await_(holds: Callable[[], Any], what: str, patience: float = PATIENCE) -> None:
    """Wait until *holds*."""
    until(holds, what, patience, tick=0.5)


@dataclass
class Visit(threading.Thread):
    """A visit that is written while something else happens.

    Attributes:
        stack: Where to.
        alerts: How many.
        sent: Ids of what was written so far.
    """

    stack: Stack
    alerts: int
    sent: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        now = datetime.now(UTC)
        number, log = int(now.timestamp()), VisitLog(4711, now)
        log.open(now, number)
        where = {"bootstrap": self.stack.kafka, "registry": self.stack.registry}
        connected = AlertWriter.connect("sim", sim_alert_schema(), schema_id=SIM_ALERT_ID, **where)
        with connected as writer, writer.visit(number) as visit:
            for alert in Visits(Sky(4711, self.alerts), log).alerts():
                visit.write(alert)
                self.sent.append(alert["diaSourceId"])

    def done(self) -> bool:
        """Say whether all is written."""
        return not self.is_alive()


class Subscriber(threading.Thread):
    """A VTP subscriber outside the network: acknowledges every event, and comes back when it is cut
    off.

    Args:
        port: Where the gateway listens.
        ivo: What it is known by.
    """

    def __init__(self, port: int, ivo: str = "ivo://outside/subscriber") -> None:
        super().__init__(daemon=True)
        self.ivorns: list[str] = []
        self._port, self._ivo = port, ivo

    def run(self) -> None:
        while True:
            try:
                with closing(create_connection(("127.0.0.1", self._port), timeout=30)) as self._socket:
                    self._converse()
            except OSError:
                time.sleep(0.2)  # the gateway is away: try again

    def _converse(self) -> None:
        frames = FrameDecoder()
        while data := self._socket.recv(1 << 16):
            frames.receive(data)
            for document in frames:
                self._answer(etree.fromstring(document))

    def _answer(self, root: etree._Element) -> None:
        if root.tag.endswith("VOEvent"):
            self.ivorns.append(str(root.get("ivorn")))
            answer = Transport("ack", str(root.get("ivorn")), self._ivo)
        else:
            heard = read_transport(root)
            if heard.role != "iamalive":
                return
            answer = Transport("iamalive", heard.origin, self._ivo)
        self._socket.sendall(encode_frame(encode_transport(answer, datetime.now(UTC))))
