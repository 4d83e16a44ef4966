"""A relay and its receivers, with a real Kafka and real multicast on the loopback."""

import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nightwire.consumers import AlertReader
from nightwire.core.datagrams import (
    Datagram,
    encode,
    open_sender,
    parse_group,
    read_channels,
)
from nightwire.core.kafka import admin
from nightwire.multicast.commands import relay as relay_verb
from nightwire.multicast.status import progress_of
from tests._multicast import (
    VERB,
    Receiver,
    by_partition,
    free_group,
    make_topic,
    relay,
    write_alerts,
)
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def topic(kafka: str) -> str:
    """Return a topic of two partitions that is this test's alone."""
    return make_topic(kafka, f"multicast-{secrets.token_hex(4)}")


def receiver(
    kafka: str, topic: str, group: str, wanted: int, shared: str | None = None, **more: Any
) -> Receiver:
    """Start a receiver, and wait until it hears the relay."""
    more = {"survey": "sim", "group": shared, **more}
    reader = AlertReader(topic, bootstrap=kafka, multicast=group, interface="127.0.0.1", timeout=60, **more)
    one = Receiver(reader, wanted)
    until(lambda: reader.way == "multicast" or not one.is_alive())
    return one


def whole(one: Receiver, count: int) -> bool:
    """Return whether *one* got *count* records, each once, in order, after a wait."""
    one.join(90)
    found = by_partition(one.places)
    return len(set(one.places)) == len(one.places) == count and all(
        offsets == sorted(offsets) for offsets in found.values()
    )


def test_receivers_get_each_alert_once_in_order_by_multicast(kafka: str, topic: str, tmp_path: Path) -> None:
    group = free_group()
    with relay(tmp_path / "log", kafka, topic, group):
        receivers = [receiver(kafka, topic, group, 1000) for _ in range(4)]
        write_alerts(kafka, topic, range(1000))
        assert all(whole(one, 1000) for one in receivers)
        assert all(one.ways[0] == "multicast" for one in receivers)


def test_a_relay_is_killed_and_another_takes_over(kafka: str, topic: str, tmp_path: Path) -> None:
    """Meanwhile receivers read Kafka; then multicast again."""
    group = free_group()
    with relay(tmp_path / "one", kafka, topic, group) as first:
        one = receiver(kafka, topic, group, 900)
        write_alerts(kafka, topic, range(300))
        with relay(tmp_path / "two", kafka, topic, group):
            first.send_signal(signal.SIGKILL)
            first.wait()
            write_alerts(kafka, topic, range(300, 600))
            until(lambda: one.reader.way == "multicast" and len(one.places) == 600)
            write_alerts(kafka, topic, range(600, 900))
            assert whole(one, 900)
            assert one.ways[0] == one.ways[-1] == "multicast"


def test_without_a_relay_a_receiver_reads_kafka(kafka: str, topic: str) -> None:
    reader = AlertReader(
        topic, bootstrap=kafka, multicast=free_group(), interface="127.0.0.1", start="beginning", limit=50
    )
    write_alerts(kafka, topic, range(50))
    with reader:
        assert len(list(reader)) == 50
    assert (reader.count, reader.way) == (50, "kafka")


def test_a_group_of_readers_goes_on_where_it_was(kafka: str, topic: str, tmp_path: Path) -> None:
    group, name = free_group(), f"night-{secrets.token_hex(4)}"
    with relay(tmp_path / "log", kafka, topic, group):
        first = receiver(kafka, topic, group, 40, shared=name)
        write_alerts(kafka, topic, range(40))
        assert whole(first, 40)
        write_alerts(kafka, topic, range(40, 80))
        second = receiver(kafka, topic, group, 40, shared=name)
        assert whole(second, 40)
        assert not {*first.places} & {*second.places}


def test_full_alerts_come_in_parts(kafka: str, topic: str, tmp_path: Path) -> None:
    group = free_group()
    with relay(tmp_path / "log", kafka, topic, group, "--full"):
        one = receiver(kafka, topic, group, 30)
        write_alerts(kafka, topic, range(30), stamp=136_000)
        assert whole(one, 30)
        assert one.ways == ["multicast"]


def test_a_channel_of_a_condition_carries_lite_alerts_and_kafka_has_them_whole(
    kafka: str, registry_url: str, tmp_path: Path
) -> None:
    group, topic = free_group(), "alerts.sim"
    words = ("--where", "diaSource.psfFlux > 100", "--registry", registry_url)
    written = list[int]()
    with relay(tmp_path / "log", kafka, topic, group, *words):
        one = receiver(kafka, topic, group, 10**9, registry=registry_url)

        def write_two() -> None:
            written.append(2 * len(written) + 2)
            write_alerts(kafka, topic, written[-1:], stamp=5_000)
            write_alerts(kafka, topic, [written[-1] + 1], stamp=5_000, flux=1.0)

        def are_lite() -> bool:
            write_two()
            return sum("lite" in alert.headers for alert in [*one.alerts]) > 10

        until(are_lite)
        one.wanted = len(written) + 1
        write_two()
        one.join(60)
    assert sorted(alert.alert_id for alert in one.alerts) == written
    lite = next(alert for alert in one.alerts if alert.headers.get("lite") == b"1")
    assert "cutoutScience" not in lite.alert
    whole_one = one.reader.full(lite)
    one.reader.close()
    assert whole_one.alert["cutoutScience"] == bytes(5_000)
    assert whole_one.position == lite.position


def test_forged_foreign_and_replayed_datagrams_are_dropped_and_counted(
    topic: str, kafka: str, tmp_path: Path
) -> None:
    group = free_group()
    with relay(tmp_path / "log", kafka, topic, group):
        one = receiver(kafka, topic, group, 20)
        write_alerts(kafka, topic, range(10))
        until(lambda: len(one.places) == 10)
        number = read_channels(kafka, topic)[group].number
        epoch = progress_of(kafka, topic)[0].epoch
        old = Datagram(0, number, 0, (epoch - 1) % 65536, 10**6, 10**6 - 1, 0, 0, 1, b"")
        again = old._replace(epoch=epoch, offset=0, previous=-1)
        with open_sender(parse_group(group, "127.0.0.1")) as sender:
            for raw in (b"", b"GET / HTTP/1.1", encode(old)[:9], encode(old), encode(again)):
                sender.send(raw)
            sender.send(encode(old._replace(channel=number ^ 1)))
        write_alerts(kafka, topic, range(10, 20))
        assert whole(one, 20)
        dropped = one.reader.dropped
        assert dropped["foreign"] >= 2
        assert (dropped["malformed"], dropped["old_epoch"], dropped["replayed"]) == (1, 1, 1)


def test_status_and_listen_show_what_a_relay_does(kafka: str, topic: str, tmp_path: Path) -> None:
    group = free_group()
    words = ["--topic", topic, "--bootstrap", kafka, "--json"]
    with relay(tmp_path / "log", kafka, topic, group):
        write_alerts(kafka, topic, range(40))
        (row, _) = json.loads(CliRunner().invoke(relay_verb, ["status", *words]).output)
        assert (row["group"], row["signed"], row["condition"]) == (group, False, "")
        there = ["--group", group, "--interface", "127.0.0.1", "--for", "2s"]
        heard = CliRunner().invoke(relay_verb, ["listen", *words, *there]).output.splitlines()
    assert sum(json.loads(line)["heartbeats"] for line in heard) >= 2
    assert json.loads(heard[0])["epochs"].keys() == {"0", "1"}


def test_status_of_a_topic_that_is_no_more_says_so(kafka: str, topic: str, tmp_path: Path) -> None:
    with relay(tmp_path / "log", kafka, topic, free_group()):
        pass
    client = admin(kafka)
    client.delete_topics([topic])[topic].result(30)
    done = CliRunner().invoke(relay_verb, ["status", "--topic", topic, "--bootstrap", kafka])
    assert f"{topic} was sent to 239." in str(done.exception)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--topic", "nowhere", "--group", "239.1.1.1:5000"), "no topic nowhere; there are:"),
        (("--topic", "visits", "--group", "10.1.1.1:5000"), "is no multicast group"),
        (("--topic", "alerts.sim", "--group", "239.1.1.1:5000", "--where", "magnitude <"), "--where: line 1"),
        (("--topic", "visits", "--group", "239.1.1.1:5000", "--where", "magnitude < 1"), "needs its survey"),
    ],
)
def test_what_cannot_be_relayed_is_named(kafka: str, words: tuple[str, ...], says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", VERB, "serve", *words, "--bootstrap", kafka, "--interface", "127.0.0.1"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert says in done.stderr


def test_a_group_that_carries_something_else_is_not_taken_over(
    kafka: str, topic: str, tmp_path: Path
) -> None:
    group = free_group()
    with relay(tmp_path / "log", kafka, topic, group):
        there = ["--topic", topic, "--group", group, "--bootstrap", kafka, "--interface", "127.0.0.1"]
        done = subprocess.run(
            [sys.executable, "-c", VERB, "serve", *there, "--full"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode != 0
    assert f"{group} carries {topic}" in done.stderr
    assert "another channel has a group of its own" in done.stderr
