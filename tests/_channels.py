"""Sources that write channels, and readers of them, for tests: real writers, real Kafka."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from nightwire.consumers import AlertReader, ReceivedAlert
from nightwire.core.channels import ChannelCopies, OneSchema
from nightwire.core.kafka import TopicPartition, consumer, producer, watermarks
from nightwire.producer import AlertWriter
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, survey
from tests._alerts import empty
from tests._multicast import Receiver
from tests._waiting import until

TOPIC = "alerts.sim"
WIDER, WHERE = "diaSource.psfFlux >= 80", "diaSource.psfFlux >= 90"
"""What the channel has, a fifth; what readers want, a tenth."""
MANY = 10**9
SIM = OneSchema(Codec(sim_alert_schema()))
Work = Callable[[range], None]


def alert(number: int) -> dict[str, Any]:
    """Return a simulated alert, whose flux is its number modulo 100. [nJy]"""
    found = empty(sim_alert_schema())
    found["diaSourceId"] = found["diaSource"]["diaSourceId"] = number + 1
    flux = {"psfFlux": float(number % 100), "psfFluxErr": 1.0, "band": "r"}
    found["diaSource"] |= {"diaObjectId": number % 97, **flux}
    return dict(found)


@contextmanager
def source(bootstrap: str, *, channels: int | None = 1) -> Iterator[Work]:
    """Yield what writes alerts by their numbers and waits, once it copies to so many channels.

    With *channels* None it is one that knows of none.
    """
    copies = None
    if channels is not None:
        copies = ChannelCopies(bootstrap, TOPIC, "sim", SIM)
        copies.start()
        until(lambda: len(copies.names) == channels)
    client = producer(bootstrap, batch_size=20_000)
    with AlertWriter(client, survey("sim"), SIM.known, SIM_ALERT_ID, channels=copies) as writer:

        def write(numbers: range) -> None:
            for number in numbers:
                writer.write(alert(number), visit=number % 7)
            writer.flush()

        yield write


class Load(threading.Thread):
    """Writes a hundred alerts again and again, until it is stopped; within a ``with`` block."""

    def __init__(self, write: Work) -> None:
        super().__init__(daemon=True)
        self._write, self._leave = write, threading.Event()

    def run(self) -> None:
        """Write."""
        for number in count(0, 100):
            self._write(range(number, number + 100))
            if self._leave.wait(0.1):
                return

    def __enter__(self) -> "Load":
        self.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self._leave.set()
        self.join()


def ends(bootstrap: str, topic: str = TOPIC) -> dict[TopicPartition, int]:
    """Return where the partitions of a topic end."""
    with consumer(bootstrap) as client:
        numbers = client.list_topics(timeout=10).topics[topic].partitions
        return {(topic, number): watermarks(client, topic, number).high for number in numbers}


class Member(Receiver):
    """A reader of what is bright, which begins live, until it is to leave."""

    def __init__(self, bootstrap: str, registry: str, **more: Any) -> None:
        self._left = threading.Event()
        more = {"where": WHERE, "start": "live", "timeout": 60, "stopped": self._left.is_set, **more}
        super().__init__(AlertReader(TOPIC, bootstrap=bootstrap, registry=registry, **more).open(), MANY)

    def leave(self) -> None:
        """Have it leave, and wait for that: what was handed out is done."""
        self._left.set()
        self.join(60)


def plain(bootstrap: str, registry: str, begin: dict[TopicPartition, int]) -> list[ReceivedAlert]:
    """Return what a reader without channels gets, from *begin* on."""
    how: dict[str, Any] = {"where": WHERE, "start": "beginning", "follow": False, "channel": False}
    with AlertReader(TOPIC, bootstrap=bootstrap, registry=registry, **how) as all_of_it:
        return [one for one in all_of_it if one.offset >= begin[one.topic, one.partition]]


def identity(one: ReceivedAlert) -> tuple[Any, ...]:
    """Return all that makes an alert itself."""
    return *one.position, one.key, one.timestamp, sorted(one.headers.items()), one.value


def by_channel(*some: Receiver) -> bool:
    """Return whether each reads a channel now, or another member has all partitions."""
    return all(one.reader.way.startswith("channel bright of") for one in some)


ELSEWHERE = f"""
import sys
sys.path[:0] = {sys.path!r}
import threading
from tests._channels import Load, source
with source(sys.argv[1]) as write, Load(write):
    threading.Event().wait()
"""


@contextmanager
def written_elsewhere(bootstrap: str) -> Iterator[None]:
    """Run a source in a process of its own, and kill it at the end."""
    with subprocess.Popen([sys.executable, "-c", ELSEWHERE, bootstrap]) as child:
        try:
            yield
        finally:
            child.kill()
