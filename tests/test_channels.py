"""Derived channels: sources that copy, and readers that read the copies, with a real Kafka."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import pytest

from nightwire.core.channels import ChannelMapping
from nightwire.core.kafka import TopicPartition, Writer, ensure_topics, producer
from nightwire.multicast.channel_admin import make_channel, remove_channel
from nightwire.schemas.topics import CHANNELS, settings
from tests._channels import (
    TOPIC,
    WHERE,
    WIDER,
    Load,
    Member,
    by_channel,
    ends,
    identity,
    plain,
    source,
    written_elsewhere,
)
from tests._multicast import by_partition, write_alerts
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def channel(kafka: str) -> Iterator[str]:
    """Yield the name of a channel of `alerts.sim`, while it is there."""
    make_channel(kafka, TOPIC, "bright", WIDER)
    yield "bright"
    remove_channel(kafka, TOPIC, "bright")


Same = Callable[[Sequence[Member]], bool]


@pytest.fixture
def same(kafka: str, registry_url: str) -> Iterator[Same]:
    """Yield what waits until some readers got, together, once, in order, what a plain one gets.

    They leave at the end: others' tests write to the same topic.
    """
    begin, seen = ends(kafka), list[Member]()

    def are_the_same(some: Sequence[Member]) -> bool:
        seen.extend(some)
        wanted = plain(kafka, registry_url, begin)
        until(lambda: sum(len(one.places) for one in some) >= len(wanted))
        found = [alert for one in some for alert in [*one.alerts]]
        in_order = all(
            offsets == sorted(offsets) for one in some for offsets in by_partition(one.places).values()
        )
        return in_order and sorted(map(identity, found)) == sorted(map(identity, wanted))

    yield are_the_same
    for one in seen:
        one.leave()


def test_two_sources_and_a_stranger_write_at_once(
    kafka: str, registry_url: str, channel: str, same: Same
) -> None:
    one = Member(kafka, registry_url)
    with source(kafka) as first, source(kafka) as second, Load(first), Load(second):
        until(lambda: by_channel(one))
        for number in range(20):
            write_alerts(kafka, TOPIC, range(1, 30), flux=85.0 + number % 2 * 10)
        until(lambda: len(one.places) > 300)
    assert same([one])
    assert f"channel {channel} of {TOPIC}" in one.ways


def test_a_source_is_killed_and_a_stranger_goes_on(
    kafka: str, registry_url: str, channel: str, same: Same
) -> None:
    one = Member(kafka, registry_url)
    with written_elsewhere(kafka):
        until(lambda: by_channel(one))
    with source(kafka, channels=None) as stranger, Load(stranger):
        until(lambda: one.reader.way == "kafka")
    assert same([one])
    with source(kafka) as again, Load(again):
        until(lambda: by_channel(one))
    assert same([one])


def test_a_channel_comes_changes_and_goes_while_it_is_read(kafka: str, registry_url: str, same: Same) -> None:
    one, other = (Member(kafka, registry_url) for _ in range(2))
    with source(kafka, channels=0) as write, Load(write):
        for condition in (WIDER, WHERE):
            make_channel(kafka, TOPIC, "bright", condition)
            until(lambda: by_channel(one, other))
        make_channel(kafka, TOPIC, "bright", "diaSource.psfFlux >= 95")
        until(lambda: one.reader.way == other.reader.way == "kafka")
        make_channel(kafka, TOPIC, "bright", WHERE)
        until(lambda: by_channel(one, other))
        remove_channel(kafka, TOPIC, "bright")
        until(lambda: one.reader.way == other.reader.way == "kafka")
    assert same([one])
    assert same([other])


def test_members_share_a_channel_and_go_on_where_the_group_was(
    kafka: str, registry_url: str, channel: str, same: Same
) -> None:
    """The source is in a process of its own: in this one they would hear it from memory."""
    group = f"night-{secrets.token_hex(4)}"

    def member() -> Member:
        return Member(kafka, registry_url, group=group, commit_interval=0.1)

    first = member()
    with written_elsewhere(kafka):
        until(lambda: by_channel(first))
        second = member()
        until(lambda: by_channel(first, second))
        first.leave()
        third = member()
        until(lambda: by_channel(second, third) and len(third.places) > 100)
    assert same([first, second, third])


def test_a_group_passes_over_what_a_channel_leaves_out(
    kafka: str, registry_url: str, channel: str, same: Same
) -> None:
    """It wants nothing of what comes, and is not behind for that."""
    group = f"night-{secrets.token_hex(4)}"
    more = {"group": group, "commit_interval": 0.1, "where": "diaSource.psfFlux > 1000"}
    one = Member(kafka, registry_url, **more)
    with source(kafka) as write:
        with Load(write):
            until(lambda: by_channel(one))
        left_out = one.reader.filtered
        write(range(2_050))  # the last are not in the channel
        until(lambda: committed(kafka, group) == ends(kafka))
    assert one.reader.filtered - left_out < 800
    one.leave()
    assert one.places == []


def test_a_channel_whose_topic_is_not_there_is_none(kafka: str, registry_url: str, same: Same) -> None:
    made = ChannelMapping(TOPIC, "nowhere", WIDER, "ann", datetime.now(UTC), derived=True)
    ensure_topics(kafka, [settings(CHANNELS)])
    said = Writer(producer(kafka))
    said.write(CHANNELS, made.encoded(), key=made.key.encode())
    said.flush()
    one = Member(kafka, registry_url)
    with source(kafka, channels=0) as write:
        write(range(3_000))
    assert same([one])
    assert one.ways == ["kafka"]
    remove_channel(kafka, TOPIC, "nowhere")


def committed(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    """Return the group's offsets."""
    from confluent_kafka import TopicPartition as TopicPartitionOffset

    from nightwire.core.kafka import consumer

    with consumer(bootstrap, group=group) as client:
        found = client.committed([TopicPartitionOffset(*one) for one in ends(bootstrap)], timeout=10)
        return {(one.topic, one.partition): one.offset for one in found}
