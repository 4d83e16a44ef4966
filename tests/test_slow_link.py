"""A reader behind a link that is cut: fresh alerts, less of each; all of them whole in the end."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from conftest import PAGES
from nightwire.benchmarks.environment.slow_link import SlowLink
from nightwire.consumers import AlertReader, ReceivedAlert, TopicError
from nightwire.core.kafka import ensure_topics, producer
from nightwire.core.stack import free_port
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.topics import DIRECTORY, FILTERS, OWED, settings
from nightwire.schemas.wire import frame
from tests._channels import alert as bare_alert
from tests._serving import await_port

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LIMIT = 1.0
"""Age above which less is sent. [s]"""
FREE, CUT = 4e6, 10e3
"""Rates of the link. [byte/s]"""
CODEC = Codec(sim_alert_schema())


def alert(number: int) -> bytes:
    """Return an alert of some 9 kB, of which a twentieth is no stamp."""
    return frame(SIM_ALERT_ID, CODEC.encode(bare_alert(number) | {"cutoutScience": os.urandom(9_000)}))


@dataclass
class Directory:
    """A directory's process, to be killed and started again."""

    kafka: str
    folder: Path
    port: int = field(default_factory=free_port)
    page: int = field(default_factory=free_port)

    def start(self) -> None:
        words = ["directory", "serve", "--bootstrap", self.kafka, "--port", str(self.port)]
        command = [sys.executable, "-m", "nightwire.core.cli", *words, "--metrics-port", str(self.page)]
        log = self.folder / "log"
        with log.open("ab") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out)
        await_port(self.port, lambda: self.child.poll() is None, log)

    def kill(self) -> None:
        self.child.send_signal(signal.SIGKILL)
        self.child.wait(60)

    def became(self, topic: str) -> dict[str, int]:
        """Return what records of *topic* became since it started."""
        lines = PAGES.get(f"http://127.0.0.1:{self.page}/metrics").text.splitlines()
        ours = [one for one in lines if one.startswith("nightwire_slow_link_records_total") and topic in one]
        return {one.split('became="')[1].split('"')[0]: int(float(one.split()[-1])) for one in ours}


@pytest.fixture(scope="module")
def directory(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    ensure_topics(kafka, [settings(name) for name in (DIRECTORY, FILTERS, OWED)])
    one = Directory(kafka, tmp_path_factory.mktemp("directory"))
    one.start()
    yield one
    one.child.terminate()
    one.child.wait(60)


class Night:
    """Alerts that are written at a steady rate until it ends."""

    def __init__(self, kafka: str, topic: str, rate: float) -> None:
        self._kafka, self._topic, self._rate, self.written = kafka, topic, rate, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self.end()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        client = producer(self._kafka, linger_ms=5)
        while not self._over.wait(1 / self._rate):
            number = self.written
            client.produce(self._topic, alert(number), partition=number % 2, headers=[("survey", b"sim")])
            self.written += 1
            client.poll(0)
        assert client.flush(60) == 0


class Seen:
    """What a reader was given."""

    def __init__(self) -> None:
        self.whole, self.levels = Counter[tuple[str, int, int]](), dict[tuple[str, int, int], str]()
        self.follows = dict[tuple[str, int, int], str]()

    def read(self, reader: AlertReader, enough: Callable[[], bool]) -> None:
        """Read on until it is *enough*, or the end."""
        for one in reader:
            self.note(one)
            if enough():
                return

    def note(self, one: ReceivedAlert) -> None:
        if "level" in one.headers:
            assert not one.alert["cutoutScience"]
            self.levels[one.position] = one.headers["level"].decode()
            return
        assert len(one.alert["cutoutScience"]) == 9_000
        self.whole[one.position] += 1
        if "follows" in one.headers:
            self.follows[one.position] = one.headers["follows"].decode()


@pytest.mark.proof
def test_a_cut_link_gets_less_and_in_the_end_everything_once(
    directory: Directory, kafka: str, fresh_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, seen = fresh_topic("alerts", partitions=2), Seen()
    with SlowLink(directory.port, FREE) as link, Night(kafka, topic, 50.0) as night:
        monkeypatch.setenv("NIGHTWIRE_DIRECTORY", f"http://127.0.0.1:{link.port}")
        reader = AlertReader(
            topic,
            group=f"g{os.urandom(4).hex()}",
            slow_link=LIMIT,
            bootstrap="127.0.0.1:9",  # nobody: the directory alone is reached
            survey="sim",
            timeout=60,
            stopped=lambda: night.over and len(seen.whole) == night.written,
        )
        with reader:
            seen.read(reader, lambda: bool(seen.whole or seen.levels))
            link.rate = CUT
            seen.read(reader, lambda: reader.way == "slow link, sample")
            sampled = len(seen.levels)
            seen.read(reader, lambda: len(seen.levels) > sampled + 20)
            directory.kill()
            directory.start()
            seen.read(reader, lambda: len(seen.levels) > sampled + 60)
            link.rate = FREE
            night.end()
            seen.read(reader, lambda: False)
    assert len(seen.whole) == night.written
    assert {*seen.whole.values()} == {1}
    assert seen.levels.items() <= seen.follows.items()
    assert {level for one, level in seen.follows.items() if one not in seen.levels} <= {"nothing"}


def test_a_free_link_gets_all_of_each(
    directory: Directory, kafka: str, fresh_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, client = fresh_topic("alerts", partitions=1), producer(kafka)
    for number, value in enumerate((alert(0), b"none", alert(2))):
        client.produce(topic, value, b"k\xff%d" % number, headers=[("survey", b"sim"), ("a=", b"&\0")])
    assert client.flush(60) == 0
    monkeypatch.setenv("NIGHTWIRE_DIRECTORY", f"http://127.0.0.1:{directory.port}")
    how: dict[str, Any] = {"group": f"g{os.urandom(4).hex()}", "slow_link": 60, "follow": False}
    with AlertReader(topic, bootstrap="127.0.0.1:9", **how) as reader:
        found = [one for batch in reader.batches(size=2) for one in batch]
        assert (reader.way, reader.undecodable) == ("slow link, full", 1)
    assert [(one.offset, one.key) for one in found] == [(0, b"k\xff0"), (2, b"k\xff2")]
    assert found[1].headers == {"survey": b"sim", "a=": b"&\0"}
    assert len(found[1].alert["cutoutScience"]) == 9_000
    with AlertReader(topic, bootstrap="127.0.0.1:9", **how) as reader:
        assert list(reader) == []


def test_what_was_done_does_not_come_again(
    directory: Directory, kafka: str, fresh_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, client = fresh_topic("alerts", partitions=2), producer(kafka)
    for number in range(8):
        client.produce(topic, alert(number), partition=number % 2, headers=[("survey", b"sim")])
    assert client.flush(60) == 0
    monkeypatch.setenv("NIGHTWIRE_DIRECTORY", f"http://127.0.0.1:{directory.port}")
    how: dict[str, Any] = {"group": f"g{os.urandom(4).hex()}", "slow_link": 60, "follow": False}
    found: list[tuple[str, int, int]] = []
    for limit in (3, 2, None):
        with AlertReader(topic, bootstrap="127.0.0.1:9", limit=limit, **how) as reader:
            found += [one.position for one in reader]
    assert sorted(found) == [(topic, partition, offset) for partition in range(2) for offset in range(4)]


def test_what_cannot_be_read_is_refused(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(topic: str, **how: Any) -> None:
        with AlertReader(topic, bootstrap="127.0.0.1:9", slow_link=True, **how) as reader:
            next(reader)

    monkeypatch.delenv("NIGHTWIRE_DIRECTORY", raising=False)
    with pytest.raises(TopicError, match="NIGHTWIRE_DIRECTORY"):
        read("alerts.sim", group="g")
    monkeypatch.setenv("NIGHTWIRE_DIRECTORY", f"http://127.0.0.1:{directory.port}")
    with pytest.raises(TopicError, match=r"topic alerts\.none"):
        read("alerts.none", group="g")
    with pytest.raises(TopicError, match="rank=colour: there are mjd_tai"):
        read("alerts.sim", group="g", rank="colour")
    with pytest.raises(ValueError, match="one topic and a group"):
        read("alerts.sim")
    with pytest.raises(ValueError, match="has no dedup"):
        read("alerts.sim", group="g", dedup="alert")
