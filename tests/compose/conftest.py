"""The compose stack, brought up once for all tests."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightwire.core.stack import free_port
from nightwire.core.tls.site import Site
from tests.compose.stack import OPERATOR, ROOT, SKYMAPS, Stack, await_

HERE = Path(__file__).parent
PORTS: tuple[str, ...] = ("KAFKA_PORT_1", "KAFKA_PORT_2", "KAFKA_PORT_3", "REGISTRY_PORT", "VTP_AUTHORS_PORT")
PORTS += ("VTP_SUBSCRIBERS_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT", "GRAFANA_PORT")
PORTS += ("PUBLIC_KAFKA_1", "PUBLIC_KAFKA_2", "PUBLIC_KAFKA_3", "PUBLIC_REGISTRY")
PORTS += ("PUBLIC_VTP_AUTHORS", "PUBLIC_VTP_SUBSCRIBERS")
PORTS += (
    "DIRECTORY_PORT",
    "PUBLIC_DIRECTORY",
    "ARCHIVE_PORT",
    "PUBLIC_ARCHIVE",
    "PORTAL_PORT",
    "PUBLIC_PORTAL",
)
CONTAINERS_USER = 10001


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Bring everything up but what has no image here, with a small simulated stream; take it
    down again.
    """
    alarms = tmp_path_factory.mktemp("alertmanager") / "alertmanager.yml"
    shown = (ROOT / "monitoring" / "alertmanager" / "alertmanager.yml").read_text()
    hook = '  - name: operator\n    webhook_configs: [{url: "http://hook:8000/"}]\n'
    alarms.write_text(shown.replace("  - name: operator\n", hook))
    assert hook in alarms.read_text()
    ports = {name: str(free_port()) for name in PORTS}
    told = {"COMPOSE_PROFILES": "", "STREAM_ALERTS": "100", "STREAM_INTERVAL": "20s"}
    told |= {"TEST_ALARMS": str(alarms), "TEST_HOOK": str(HERE / "hook.py")}
    site = Site(tmp_path_factory.mktemp("site") / "tls")
    site.init(["127.0.0.1"], owner=CONTAINERS_USER)
    for folder in (site.folder, *site.folder.parents[:2]):
        folder.chmod(0o711)
    told |= {"SKYMAPS_FROM": f"skymaps.example.org {SKYMAPS}"}
    told |= {"PUBLIC_HOST": "127.0.0.1", "PUBLIC_BIND": "127.0.0.1", "TLS_FOLDER": str(site.folder)}
    files = (ROOT / "docker-compose.yml", ROOT / "docker-compose.tls.yml", HERE / "hook.yml")
    one = Stack(ports | told, files, site)
    try:
        started = time.monotonic()
        one.up()
        sys.stderr.write(f"up after {time.monotonic() - started:.0f} s\n")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in OPERATOR.items():
                patch.setenv(name, value)  # for what writes and reads in this process
            yield one
    finally:
        if not os.environ.get("NIGHTWIRE_KEEP"):
            one.compose("down", "--volumes", "--timeout", "20")


@pytest.fixture(scope="session")
def owner(stack: Stack) -> dict[str, str]:
    """Let the owner `demo` in, and return the variables with which it enters."""
    entered: dict[str, str] = json.loads(stack.nightwire("user", "add", "demo", "--json"))["environment"]
    assert entered["KAFKA_SASL_MECHANISM"] == "SCRAM-SHA-512"
    return entered


@pytest.fixture(scope="session")
def quiet(stack: Stack, owner: dict[str, str]) -> Stack:
    """Submit a filter, let the simulated survey play a visit, then stop it: what comes now is
    the test's.
    """
    notebook = ROOT / "filters" / "notebooks" / "bright-transient.ipynb"
    stack.nightwire("filter", "submit", str(notebook), "--name", "bright", user=owner)
    await_(lambda: stack.stages().get("producer", {}).get("delivered", 0) >= 100, "a visit of the stream")
    stack.compose("stop", "producer")
    return stack
