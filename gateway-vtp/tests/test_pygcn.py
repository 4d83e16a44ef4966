"""With pygcn, which most telescopes ran for gamma-ray bursts: neither ours nor Comet's."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.stack import die_with_parent
from nightwire.gateway import Author, Submission
from nightwire.gateway.net.addresses import Address
from tests._voevents import packet
from tests._waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.kafka]

LISTEN = """
import logging, pathlib, sys
import gcn
logging.basicConfig(level=logging.DEBUG)
folder, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])

def save(payload, root):
    part = folder / (root.get("ivorn").rpartition("#")[2] + ".part")
    part.write_bytes(payload)
    part.rename(part.with_suffix(".xml"))

gcn.listen("127.0.0.1", port, ivorn="ivo://test.pygcn/telescope", handler=save)
"""


@pytest.fixture
def pygcn(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Return a function that starts pygcn on a port; it returns the folder of its events."""
    started: list[subprocess.Popen[bytes]] = []

    def start(port: int) -> Path:
        folder = tmp_path / "pygcn"
        folder.mkdir()
        with (tmp_path / "pygcn.log").open("wb") as log:
            command = [sys.executable, "-c", LISTEN, str(folder), str(port)]
            started.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    preexec_fn=die_with_parent,  # noqa: PLW1509  (no threads before the fork matter here)
                )
            )
        return folder

    yield start
    for one in started:
        one.kill()
        one.wait()


def test_pygcn_gets_what_it_knows_and_acknowledges_it_though_it_knows_no_greeting(
    start_gateway: Callable[..., Any],
    pygcn: Callable[[int], Path],
    ivorns: Callable[[int], list[str]],
    tmp_path: Path,
) -> None:
    gateway = start_gateway("--iamalive", "1")
    inbox, log = pygcn(gateway.subscribers), tmp_path / "pygcn.log"
    until(lambda: "unrecognized role: authenticate" in log.read_text(), "pygcn to subscribe")
    author = Author(Address("127.0.0.1", gateway.authors))
    sent = [
        packet(ivorn, version=version) for ivorn, version in zip(ivorns(6), ("2.0", "1.1") * 3, strict=True)
    ]
    for document in sent:
        assert author.send(Submission("x", document)).verdict == "ack"
    until(lambda: len(list(inbox.glob("*.xml"))) == 6, "pygcn to save the events")
    assert sorted(file.read_bytes() for file in inbox.glob("*.xml")) == sorted(sent)
    until(lambda: log.read_text().count("sent iamalive response") >= 2, "pygcn to say that it is alive")
    assert log.read_text().count("opened socket") == 1  # it never lost the connection
    assert gateway.stop() == 0
    assert "sent 6, acked 6" in gateway.log.read_text()
