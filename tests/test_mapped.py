"""A relay that follows the mapping of channels, and readers that go with it."""

import json
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nightwire.consumers import AlertReader
from nightwire.core.channels import ChannelMapping
from nightwire.core.datagrams import (
    HEARTBEAT,
    PACKED,
    decode,
    decode_pack,
    open_receiver,
    parse_group,
)
from nightwire.core.kafka import ensure_topics
from nightwire.core.subscriptions import Registrar
from nightwire.multicast.channel_commands import channel as channel_verb
from nightwire.multicast.planning import offsets_ahead, write_mappings
from nightwire.schemas.topics import CHANNELS, SUBSCRIPTIONS, settings
from tests._multicast import (
    Receiver,
    by_partition,
    free_group,
    make_topic,
    running_relay,
    write_alerts,
)
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]

LEAD = 0.5
"""How long before it holds a mapping is told. [s]"""


@pytest.fixture
def topic(kafka: str) -> str:
    """Return a topic of two partitions that is this test's alone."""
    ensure_topics(kafka, [settings(CHANNELS)])
    return make_topic(kafka, f"mapped-{secrets.token_hex(4)}")


def mapping(topic: str, name: str, group: str | None, condition: str = "TRUE") -> ChannelMapping:
    """Return a channel that holds from the beginning."""
    return ChannelMapping(topic, name, condition, "test", datetime.now(UTC), group=group)


def reader_of(kafka: str, topic: str, wanted: int, **more: object) -> Receiver:
    """Start a reader that chooses its group, and wait until it hears the relay."""
    how: dict[str, object] = {"survey": "sim", "interface": "127.0.0.1", "timeout": 60, "multicast": "auto"}
    reader = AlertReader(topic, bootstrap=kafka, **{**how, **more})  # type: ignore[arg-type]
    one = Receiver(reader, wanted)
    until(lambda: reader.way.startswith("multicast") or not one.is_alive())
    return one


class Spy(threading.Thread):
    """Hears groups, and notes which offsets each was sent.

    Attributes:
        sent: How often each place was sent to each group.
    """

    def __init__(self, groups: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.sent: Counter[tuple[str, int, int]] = Counter()
        self._sockets = {name: open_receiver(parse_group(name, "127.0.0.1")) for name in groups}
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        """Listen."""
        while not self.over.wait(0.005):
            for name, one in self._sockets.items():
                for raw in datagrams(one):
                    found = decode(raw)
                    if found.kind == HEARTBEAT:
                        continue
                    pack = decode_pack(found) if found.kind == PACKED else [found]
                    self.sent.update((name, found.partition, entry.offset) for entry in pack)
        for one in self._sockets.values():
            one.close()


def datagrams(one: socket.socket) -> Iterator[bytes]:
    """Yield what a socket has now."""
    while True:
        try:
            yield one.recv(1 << 16)
        except BlockingIOError:
            return


@contextmanager
def remapped(kafka: str, channel: ChannelMapping, groups: Sequence[str], every: float) -> Iterator[list[str]]:
    """Move *channel* to the next of *groups* again and again within the block; yield to which."""
    over, were = threading.Event(), list[str]()

    def move() -> None:
        while not over.wait(every):
            were.append(groups[(len(were) + 1) % len(groups)])
            since = offsets_ahead(kafka, channel.topic, lead=LEAD)
            write_mappings(kafka, [replace(channel, group=were[-1], since=since)])

    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield were
    finally:
        over.set()
        thread.join()


def test_a_channel_moves_every_second_under_load_and_nothing_is_lost_or_doubled(
    kafka: str, topic: str, tmp_path: Path
) -> None:
    groups = [free_group() for _ in range(3)]
    channel, count = mapping(topic, "all", groups[0]), 4000
    write_mappings(kafka, [channel])
    spy = Spy(groups)
    with running_relay(tmp_path / "log", kafka, topic, "--mapped"):
        readers = [reader_of(kafka, topic, count) for _ in range(2)]
        with remapped(kafka, channel, groups, 1.0) as were:
            for begin in range(0, count, 40):
                write_alerts(kafka, topic, range(begin, begin + 40))
                time.sleep(0.05)
        for one in readers:
            one.join(90)
            found = by_partition(one.places)
            assert len(one.places) == len({*one.places}) == count
            assert all(offsets == sorted(offsets) for offsets in found.values())
            assert "kafka" not in one.ways[1:]
            assert len(one.ways) > 4
    spy.over.set()
    spy.join()
    assert len(were) > 4
    assert len({place[0] for place in spy.sent}) == 3
    assert {*spy.sent.values()} == {1}  # each record was sent once, to one group
    unsent = count - len({place[1:] for place in spy.sent})  # a sender that Kafka let begin too late
    assert unsent <= min(one.repaired for one in readers)


@pytest.mark.proof
def test_a_mapped_relay_is_killed_while_its_channel_moves_and_another_takes_over(
    kafka: str, topic: str, tmp_path: Path
) -> None:
    groups = [free_group() for _ in range(2)]
    channel, count = mapping(topic, "all", groups[0]), 2000
    write_mappings(kafka, [channel])
    with running_relay(tmp_path / "one", kafka, topic, "--mapped") as first:
        one = reader_of(kafka, topic, count)
        with (
            running_relay(tmp_path / "two", kafka, topic, "--mapped"),
            remapped(kafka, channel, groups, 2.0),
        ):
            for begin in range(0, count, 20):
                write_alerts(kafka, topic, range(begin, begin + 20))
                if begin == 400:
                    first.kill()
                    first.wait()
                time.sleep(0.1)
            one.join(90)
    assert len(one.places) == len({*one.places}) == count
    assert all(offsets == sorted(offsets) for offsets in by_partition(one.places).values())
    assert one.ways[-1].startswith("multicast")


def test_channels_are_planned_shown_made_kept_and_heard(
    kafka: str, registry_url: str, tmp_path: Path
) -> None:
    """Eight want the tenth that is bright, or less: it gets a group, and one of them goes there."""
    topic, bright = "alerts.sim", "diaSource.psfFlux > 1000"
    ensure_topics(kafka, [settings(name) for name in (topic, CHANNELS)])
    network, _, port = free_group().partition(":")
    words = [
        topic,
        "--bootstrap",
        kafka,
        "--registry",
        registry_url,
        "--json",
        "--over",
        "1m",
        "--make",
        "1B",
    ]
    words += ["--groups", f"{network.rpartition('.')[0]}.0/24:{port}", "--keep", "1B"]
    for begin in range(1, 400, 10):  # more than are judged: the topic has others' as well
        write_alerts(kafka, topic, range(begin, begin + 9), flux=10.0)
        write_alerts(kafka, topic, [begin + 9], flux=5000.0)
    with registrar_of(kafka) as told:
        for number in range(8):
            told.subscribe(f"test.{number}", topic, f"{bright} AND diaObjectId >= {number}")
        told.subscribe("test.all-bright", topic, bright)
        told.subscribe("test.broken", topic, "magnitude <")
        until(lambda: any(one["receivers"] == 9 for one in run("plan", words)))
        first = run("plan", words)[0]
        assert (first["action"], first["condition"]) == ("make", bright)
        assert (first["receivers"], round(first["passes"], 1)) == (9, 0.1)
        assert run("apply", words)[0]["action"] == "make"
        assert {one["action"] for one in run("plan", words)} == {"keep"}
    with running_relay(tmp_path / "log", kafka, topic, "--mapped", "--registry", registry_url):
        write_alerts(kafka, topic, range(1001, 1100), flux=10.0)  # so that it begins
        one = reader_of(kafka, topic, 10, where=f"{bright} AND diaObjectId >= 0", registry=registry_url)
        assert one.reader.way == f"multicast {first['group']}"
        write_alerts(kafka, topic, range(2001, 2011), flux=10.0)
        write_alerts(kafka, topic, range(3001, 3011), flux=5000.0)
        one.join(60)
    assert sorted(alert.alert_id for alert in one.alerts) == [*range(3001, 3011)]
    assert one.reader.filtered == 0  # what it does not want did not come here


def run(verb: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """Return what a command of `nightwire channel` shows."""
    done = CliRunner().invoke(channel_verb, [verb, *words], catch_exceptions=False)
    return json.loads(done.stdout) if done.stdout else []


@contextmanager
def registrar_of(kafka: str) -> Iterator[Registrar]:
    """Yield what tells who wants what."""
    ensure_topics(kafka, [settings(SUBSCRIPTIONS)])
    told = Registrar(kafka)
    told.start()
    try:
        yield told
    finally:
        told.close()
