"""A topic that is taken out and made anew under its readers: its offsets begin again."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from nightwire.core.kafka import admin, ensure_topics
from nightwire.multicast.channel_admin import make_channel, remove_channel
from nightwire.schemas.topics import settings
from tests._channels import TOPIC, WIDER, Load, Member, by_channel, ends, plain, source
from tests._multicast import by_partition, free_group, relay, write_alerts
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.proof, pytest.mark.timeout(240)]


def make_anew(kafka: str, topic: str) -> None:
    """Take *topic* out, and make it again."""
    client = admin(kafka)
    client.delete_topics([topic])[topic].result(30)

    def is_made() -> bool:
        try:
            ensure_topics(kafka, [settings(topic)])
        except KafkaException:  # the old one is still being deleted
            return False
        return True

    until(is_made)


def test_readers_by_channel_lan_and_memory_go_on_as_one_of_kafka_does(
    kafka: str, registry_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_channel(kafka, TOPIC, "bright", WIDER)
    group, begin = free_group(), dict.fromkeys(ends(kafka), 0)
    by_lan = {"multicast": group, "interface": "127.0.0.1"}
    with relay(tmp_path / "log", kafka, TOPIC, group):
        some = [Member(kafka, registry_url), Member(kafka, registry_url, **by_lan)]
        with source(kafka) as write, Load(write):
            some.append(Member(kafka, registry_url))
            until(lambda: are_heard(*some))
        write_alerts(kafka, TOPIC, range(3000), flux=95.0)
        old = ends(kafka)
        until(
            lambda: all(({*one.places} >= {(*place, end - 1) for place, end in old.items()}) for one in some)
        )
        make_anew(kafka, TOPIC)
        with source(kafka) as write, Load(write):
            until(lambda: are_heard(*some) and some[0].places[-1][2] < min(old.values()))
        wanted = by_partition([one.position for one in plain(kafka, registry_url, begin)])
        for one in some:
            until(lambda one=one: newest(one, wanted) == wanted)
            one.leave()
    remove_channel(kafka, TOPIC, "bright")
    assert "was made anew" in caplog.text


def are_heard(channel: Member, lan: Member, memory: Member) -> bool:
    """Return whether each reads by its own way now."""
    return by_channel(channel) and (lan.reader.way, memory.reader.way) == ("multicast", "memory")


def newest(one: Member, like: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the offsets that came last, as many as in *like*."""
    found = by_partition([*one.places])
    return {number: found[number][-len(offsets) :] for number, offsets in like.items()}
