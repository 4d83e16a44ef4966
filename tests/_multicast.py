"""Relays and receivers on this machine, for tests: real processes, real sockets."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nightwire.consumers import AlertReader, ReceivedAlert
from nightwire.core.datagrams import read_channels
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.topics import TopicSettings
from nightwire.schemas.wire import frame
from tests._alerts import empty
from tests._waiting import until

VERB = "from nightwire.multicast.commands import relay; relay()"


def free_group() -> str:
    """Return a multicast group that no other test uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"239.255.{os.getpid() % 250 + 1}.{port % 250 + 1}:{port}"


def make_topic(bootstrap: str, name: str, partitions: int = 2) -> str:
    """Make a topic, and return its name."""
    ensure_topics(bootstrap, [TopicSettings(name, partitions)])
    return name


@contextmanager
def relay(log: Path, bootstrap: str, topic: str, group: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one until the block ends; it has announced its channel."""
    with running_relay(log, bootstrap, topic, "--group", group, *more) as child:
        assert group in read_channels(bootstrap, topic)
        yield child


@contextmanager
def running_relay(log: Path, bootstrap: str, topic: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one until the block ends; it has its partitions."""
    words = ["serve", "--topic", topic, "--interface", "127.0.0.1", "--bootstrap", bootstrap, *more]
    with log.open("ab") as file:
        child = subprocess.Popen([sys.executable, "-c", VERB, *words], stdout=file, stderr=file)
        try:
            until(lambda: child.poll() is None and b"from offset" in log.read_bytes(), log.read_text)
            yield child
        finally:
            if child.poll() is None:
                child.terminate()
            child.wait(30)


class Receiver(threading.Thread):
    """Reads in a thread of its own.

    Args:
        wanted: After so many alerts it ends.
        reader: Reads.

    Attributes:
        repaired: So many records were fetched from Kafka while it heard the LAN.
    """

    def __init__(self, reader: AlertReader, wanted: int) -> None:
        super().__init__(daemon=True)
        self.reader, self.wanted = reader, wanted
        self.alerts: list[ReceivedAlert] = []
        self.places: list[tuple[str, int, int]] = []
        self.ways: list[str] = []
        self.repaired = 0
        self.start()

    def run(self) -> None:
        """Read."""
        with self.reader:
            for alert in self.reader:
                self.alerts.append(alert)
                self.places.append(alert.position)
                if not self.ways or self.ways[-1] != self.reader.way:
                    self.ways.append(self.reader.way)
                if len(self.places) >= self.wanted:
                    source = self.reader._session._connection.loop.source  # type: ignore[union-attr]
                    self.repaired = getattr(source, "repaired", 0)
                    return


def by_partition(places: Sequence[tuple[str, int, int]]) -> dict[int, list[int]]:
    """Return the offsets that were handed out, by partition, in their order."""
    found: dict[int, list[int]] = {}
    for _, partition, offset in places:
        found.setdefault(partition, []).append(offset)
    return found


def write_alerts(
    bootstrap: str, topic: str, numbers: Sequence[int], *, stamp: int = 0, flux: float = 3631.0
) -> None:
    """Write the simulated alerts of *numbers*, each with a stamp of so many bytes, and wait."""
    writer, codec = Writer(producer(bootstrap, batch_size=20_000)), Codec(sim_alert_schema())
    for number in numbers:
        alert = empty(sim_alert_schema())
        alert["diaSourceId"] = alert["diaSource"]["diaSourceId"] = number
        alert["diaSource"] |= {"diaObjectId": number % 97, "psfFlux": flux, "psfFluxErr": 1.0, "band": "r"}
        alert["cutoutScience"] = bytes(stamp) if stamp else None
        value, key = frame(SIM_ALERT_ID, codec.encode(alert)), b"%d" % (number % 97)
        writer.write(topic, value, key=key, headers=[("survey", b"sim")])
    writer.flush()
