"""Brokers in a ring with chords, ours and Comet's: every subscriber gets every event once."""

import subprocess
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from nightwire.core.stack import free_port
from nightwire.gateway import Author, Receipt, Submission
from nightwire.gateway.client.bulk_author import send_bulk
from nightwire.gateway.net.addresses import Address
from tests._voevents import packet
from tests._waiting import until

pytestmark = [pytest.mark.comet, pytest.mark.kafka]

PIECE = 9
"""Most events in flight: Comet drops a peer that owes ten acks at a heartbeat."""
DEBIAN = (
    *("/usr/bin/env", f"PYTHONPATH={sysconfig.get_path('purelib')}", "/usr/bin/python3", "-S", "-c"),
    "import sys; from twisted.scripts.twistd import run; sys.argv[0] = 'twistd'; run()",
)
"""Comet under Debian's Python, whose event database (python3-gdbm) is not the quadratic one."""
SMALL = {"g1": ("g3",), "g2": ("g1",), "c1": ("g2",), "g3": ("c1", "g1")}
"""Who listens to whom: a ring of three gateways and a Comet, and one chord."""
LARGE = {
    "g1": ("g5", "g3"),
    "g2": ("g1", "g4"),
    "c1": ("g2",),
    "g3": ("c1", "g1"),
    "g4": ("g3", "g2"),
    "c2": ("g4", "g3"),
    "g5": ("c2", "c1"),
}
"""Five gateways and two Comets in a ring, and chords across it."""


@dataclass(frozen=True)
class Broker:
    """One of the mesh, ours or Comet."""

    name: str
    authors: int
    subscribers: int

    @property
    def is_comet(self) -> bool:
        return self.name.startswith("c")


@dataclass
class Mesh:
    """Brokers that listen to one another."""

    brokers: Mapping[str, Broker]
    folder: Path

    def connected(self, links: Mapping[str, Sequence[str]]) -> bool:
        """Whether every broker heard from all those it listens to."""
        return all(self._heard(self.brokers[name]) >= len(remotes) for name, remotes in links.items())

    def send(self, documents: Sequence[bytes]) -> list[Receipt]:
        """Give each document to one broker, in turn, to all of them at once."""
        receipts: list[Receipt] = []
        count = len(self.brokers)
        sending = [
            Thread(target=self._send, args=(broker, documents[number::count], receipts))
            for number, broker in enumerate(self.brokers.values())
        ]
        for thread in sending:
            thread.start()
        for thread in sending:
            thread.join()
        return receipts

    def _send(self, to: Broker, documents: Sequence[bytes], receipts: list[Receipt]) -> None:
        submissions = [Submission(to.name, document) for document in documents]
        receipts += send_bulk(Author(Address("127.0.0.1", to.authors)), submissions, 2)

    def _heard(self, broker: Broker) -> int:
        said = "Authenticate received" if broker.is_comet else ": connected"
        log = self.folder / (f"{broker.name}.log" if broker.is_comet else f"{broker.name}/gateway.log")
        return log.read_text().count(said)


Start = Callable[..., Mesh]


@pytest.fixture
def mesh(
    comet: Callable[..., subprocess.Popen[bytes]], gateway_on: Callable[..., Any], tmp_path: Path
) -> Start:
    """Return a function that starts the brokers of *links*, gateways each on its Kafka."""

    def start(
        links: Mapping[str, Sequence[str]], kafka_of: Callable[[str], str], **how: Sequence[str]
    ) -> Mesh:
        brokers = {name: Broker(name, free_port(), free_port()) for name in links}
        for name, remotes in links.items():
            ports = [brokers[one].subscribers for one in remotes]
            options = [f"--remote=127.0.0.1:{port}" for port in ports]
            if brokers[name].is_comet:
                start_comet(brokers[name], options, **how)
            else:
                ivorn = f"--ivorn=ivo://mesh.test/{name}"
                accounts = "--accounts" if name == "g1" else "--no-accounts"
                options += ["--remote-filter", "//["] if name == "g2" else []  # which is refused
                where = {"authors": brokers[name].authors, "subscribers": brokers[name].subscribers}
                gateway_on(kafka_of(name), ivorn, accounts, *options, name=name, **where)
        return Mesh(brokers, tmp_path)

    def start_comet(broker: Broker, remotes: Sequence[str], **how: Sequence[str]) -> None:
        ports = [f"--receive-port={broker.authors}", f"--broadcast-port={broker.subscribers}"]
        flags = ["--receive", "--broadcast", "--broadcast-test-interval=0"]
        comet(*flags, *ports, *remotes, name=broker.name, **how)

    return start


def check(mesh: Mesh, telescope: Callable[..., Any], documents: Sequence[bytes], timeout: float) -> None:
    """Send a piece at a time through the brokers; each listener has each document once.

    Authors of a Comet that is given more than it can take are cut off by it after 20 s.
    """
    listeners = {name: telescope(broker.subscribers) for name, broker in mesh.brokers.items()}
    bulk = len(documents) - len(mesh.brokers)
    ends = [*range(PIECE, bulk, PIECE), bulk, len(documents)]
    for first, end in zip([0, *ends], ends, strict=False):
        assert [one for one in mesh.send(documents[first:end]) if one.verdict != "ack"] == []
        for listener in listeners.values():
            listener.wait_for(end, timeout)
    for name, listener in listeners.items():
        assert sorted(listener.events) == sorted(documents), name


def test_every_subscriber_of_a_ring_with_a_chord_gets_every_event_once(
    mesh: Start, telescope: Callable[..., Any], ivorns: Callable[[int], list[str]], kafka: str, tmp_path: Path
) -> None:
    started = mesh(SMALL, lambda _: kafka)
    until(lambda: started.connected(SMALL), "the ring to close")
    check(started, telescope, [packet(ivorn) for ivorn in ivorns(54)], 60)
    assert "filter //[: not an XPath expression" in (tmp_path / "g2" / "gateway.log").read_text()


@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_ten_thousand_events_through_five_gateways_and_two_comets(
    kafka: str,
    fresh_broker: Any,  # before the gateways, so that it outlives them
    mesh: Start,
    telescope: Callable[..., Any],
    ivorns: Callable[[int], list[str]],
) -> None:
    """Gateways of two Kafkas, so that only VTP tells one half of the other's events."""
    first_half = ("g1", "g2", "g3")
    started = mesh(LARGE, lambda name: kafka if name in first_half else fresh_broker.bootstrap, twistd=DEBIAN)
    until(lambda: started.connected(LARGE), "the ring to close")
    check(started, telescope, [packet(ivorn) for ivorn in ivorns(10_007)], 900)
