"""With Comet, the VTP implementation that is in use: as author, as subscriber, and as broker."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pysequoia import Tsk

from nightwire.core.stack import free_port
from nightwire.gateway import Author, Submission
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.voevent.samples import write_samples
from tests._voevents import packet
from tests._waiting import until

pytestmark = [pytest.mark.comet, pytest.mark.kafka]

BIN = Path(sys.executable).parent
Start = Callable[..., Any]
Comet = Callable[..., subprocess.Popen[bytes]]


def sendvo(port: int, file: Path) -> subprocess.CompletedProcess[bytes]:
    command = [BIN / "comet-sendvo", "-h", "127.0.0.1", "-p", str(port), "-f", file]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def subscribed(tmp_path: Path) -> bool:
    """Whether Comet has heard from the gateway, whose log also has mere port scans."""
    return "Authenticate received" in (tmp_path / "comet.log").read_text()


def acks(tmp_path: Path) -> Counter[str]:
    """Return the acks that Comet got, by the port of who sent them: strangers may call, too."""
    return Counter(re.findall(r"Ack received .*port=(\d+)", (tmp_path / "comet.log").read_text()))


def saved(folder: Path) -> list[bytes]:
    return sorted(file.read_bytes() for file in folder.iterdir()) if folder.exists() else []


def unique(tmp_path: Path, ivorns: Callable[[int], list[str]]) -> list[Path]:
    files = write_samples(tmp_path / "samples", 8)
    for file, ivorn in zip(files, ivorns(8), strict=True):
        old = file.read_bytes()
        start = old.index(b'ivorn="') + 7
        file.write_bytes(old[:start] + ivorn.encode() + old[old.index(b'"', start) :])
    return files


def test_comet_as_author_and_comet_as_subscriber_through_our_gateway_byte_for_byte(
    start_gateway: Start, comet: Comet, ivorns: Callable[[int], list[str]], tmp_path: Path
) -> None:
    gateway = start_gateway()
    inbox = tmp_path / "inbox"
    comet(f"--remote=127.0.0.1:{gateway.subscribers}", "--save-event", f"--save-event-directory={inbox}")
    until(lambda: subscribed(tmp_path), "Comet to subscribe")
    files = unique(tmp_path, ivorns)
    for file in files:
        assert sendvo(gateway.authors, file).returncode == 0
    until(lambda: len(saved(inbox)) == 8, "Comet to save the events")
    assert saved(inbox) == sorted(file.read_bytes() for file in files)
    assert gateway.stop() == 0
    assert "sent 8, acked 8" in gateway.log.read_text()


def test_comet_as_author_learns_that_its_event_is_invalid(
    start_gateway: Start, ivorns: Callable[[int], list[str]], tmp_path: Path
) -> None:
    gateway = start_gateway()
    bad = tmp_path / "bad.xml"
    bad.write_bytes(packet(ivorns(1)[0], what="<What><Bogus/></What>"))
    done = sendvo(gateway.authors, bad)
    assert done.returncode == 1
    assert b"Bogus" in done.stdout + done.stderr


def test_comet_as_subscriber_filters_by_xpath(
    start_gateway: Start, comet: Comet, ivorns: Callable[[int], list[str]], tmp_path: Path
) -> None:
    gateway = start_gateway()
    inbox = tmp_path / "inbox"
    comet(
        f"--remote=127.0.0.1:{gateway.subscribers}",
        "--filter=/*[@role='prediction']",
        "--filter=/*[@role='utility']",
        "--save-event",
        f"--save-event-directory={inbox}",
    )
    until(lambda: "filters by" in gateway.log.read_text(), "Comet's filters")
    author = Author(Address("127.0.0.1", gateway.authors))
    sent = {}
    for ivorn, role in zip(ivorns(4), ("test", "prediction", "observation", "utility"), strict=True):
        sent[role] = packet(ivorn, role=role)
        author.send(Submission("x", sent[role]))
    until(lambda: len(saved(inbox)) == 2, "Comet to save the events")
    assert saved(inbox) == sorted([sent["prediction"], sent["utility"]])


def test_our_gateway_as_subscriber_of_a_comet_broker_that_does_not_mind_its_signed_answer(
    start_gateway: Start,
    comet: Comet,
    ivorns: Callable[[int], list[str]],
    telescope: Callable[..., Any],
    tmp_path: Path,
) -> None:
    authors, subscribers = free_port(), free_port()
    ports = [f"--receive-port={authors}", f"--broadcast-port={subscribers}"]
    comet("--receive", "--broadcast", "--broadcast-test-interval=0", *ports)
    secret = tmp_path / "secret.asc"
    secret.write_text(str(Tsk.generate(user_id="ivo://test/gateway")))
    gateway = start_gateway("--remote", f"127.0.0.1:{subscribers}", "--sign-key", str(secret))
    listener = telescope(gateway.subscribers)
    until(lambda: "New subscriber" in (tmp_path / "comet.log").read_text(), "us to subscribe")
    files = unique(tmp_path, ivorns)
    for file in files:
        assert sendvo(authors, file).returncode == 0
    assert sorted(listener.wait_for(8)) == sorted(file.read_bytes() for file in files)
    until(lambda: 8 in acks(tmp_path).values(), lambda: f"8 acks of one peer, not {acks(tmp_path)}")
    assert gateway.stop() == 0
