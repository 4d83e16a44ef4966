"""Where Kafka asks for passwords, each group's datagrams are signed with keys of its own."""

import select
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from nightwire.core.datagrams import (
    HEARTBEAT,
    Secret,
    announce,
    decode,
    encode,
    open_receiver,
    open_sender,
    parse_group,
    read_channels,
)
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.multicast.channel_admin import make_channel
from nightwire.multicast.planning import offsets_ahead, write_mappings
from nightwire.schemas.topics import CHANNELS, multicast, settings
from tests._guarded_broker import Guarded, guarded_broker, keys_of, read, speaking_as
from tests._multicast import free_group, relay, running_relay, write_alerts
from tests._waiting import until
from tests.test_mapped import reader_of
from tests.test_multicast import receiver, whole

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC = "alerts.sim"
SECRETS = {"ann": "ann's own password", "fink": "fink's own password"}
REASONS = ("forged", "replayed", "unknown_key", "unsigned")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Yield Kafka with a topic, a user, and a broker; we are its operator."""
    with guarded_broker(tmp_path_factory.mktemp("kafka")) as one:
        assert one.run("user", "add", "ann", password=SECRETS["ann"]).exit_code == 0
        assert one.run("broker", "add", "fink", "--survey", "lsst", password=SECRETS["fink"]).exit_code == 0
        with speaking_as(one.keys):
            ensure_topics(one.bootstrap, [settings(name) for name in (TOPIC, CHANNELS)])
            yield one


def first_heard(group: str, write: Callable[[], None]) -> bytes:
    """Return the first record's datagram that *write* has sent to *group*."""
    with open_receiver(parse_group(group, "127.0.0.1")) as spy:
        write()
        while select.select([spy], [], [], 2.0)[0]:
            raw = spy.recv(1 << 16)
            if not decode(raw).flags & HEARTBEAT:
                return raw
    raise AssertionError("no record was sent")


def test_who_may_read_the_topic_may_verify_and_who_may_not_can_send_nothing(
    site: Guarded, tmp_path: Path
) -> None:
    group = free_group()
    with relay(tmp_path / "log", site.bootstrap, TOPIC, group):
        channel = read_channels(site.bootstrap, TOPIC)[group]
        with speaking_as(keys_of("ann", SECRETS["ann"])):
            one = receiver(site.bootstrap, TOPIC, group, 20)
        raw = first_heard(group, lambda: write_alerts(site.bootstrap, TOPIC, range(1, 11)))
        until(lambda: len(one.places) == 10)
        stranger = decode(raw)._replace(offset=10**6, previous=10**6 - 1, body=b"")
        with open_sender(parse_group(group, "127.0.0.1")) as sender:
            sender.send(raw)
            sender.send(raw[:-1] + bytes([raw[-1] ^ 1]))
            sender.send(encode(stranger))
            sender.send(encode(stranger, Secret.of(b"guessed")))
        write_alerts(site.bootstrap, TOPIC, range(11, 21))
        assert whole(one, 20)
    assert {reason: one.reader.dropped[reason] for reason in REASONS} == dict.fromkeys(REASONS, 1)
    assert len(channel.keys) == 1
    fink = read(site.client(keys_of("fink", SECRETS["fink"]), group_id="fink.x"), multicast(TOPIC))
    assert isinstance(fink, KafkaError)
    assert fink.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_channel_moves_and_comes_back_with_another_key(site: Guarded, tmp_path: Path) -> None:
    kafka, written, (here, there) = site.bootstrap, list[int](), (free_group(), free_group())
    channel = make_channel(kafka, TOPIC, "all", "TRUE", derived=False, group=here)

    def move(to: str) -> None:
        write_mappings(kafka, [replace(channel, group=to, since=offsets_ahead(kafka, TOPIC, lead=0.5))])

    def comes_by(group: str) -> bool:
        written.extend(range(len(written), len(written) + 10))
        write_alerts(kafka, TOPIC, written[-10:])
        return one.reader.way == f"multicast {group}"

    with running_relay(tmp_path / "log", kafka, TOPIC, "--mapped"):
        write_alerts(kafka, TOPIC, range(1, 20))  # so that it begins
        with speaking_as(keys_of("ann", SECRETS["ann"])):
            one = reader_of(kafka, TOPIC, 10**9, start="live")
        until(lambda: comes_by(here))
        first = read_channels(kafka, TOPIC)[here]
        move(there)
        announce(Writer(producer(kafka)), replace(first, rotated=0))  # a day goes by
        until(lambda: comes_by(there))
        move(here)
        until(lambda: comes_by(here))
        one.wanted = len(written) + 10
        comes_by(here)
        assert whole(one, one.wanted)
    known = read_channels(kafka, TOPIC)
    assert (len(known[here].keys), known[here].keys[1:]) == (2, first.keys)
    assert not {*known[here].keys} & {*known[there].keys}
    assert one.ways == [f"multicast {group}" for group in (here, there, here)]
