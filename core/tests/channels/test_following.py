"""The topic `channels`, followed through a real Kafka."""

from datetime import UTC, datetime

import pytest

from nightwire.core.channels import ChannelFollower, ChannelMapping
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.schemas.topics import CHANNELS, settings

pytestmark = pytest.mark.kafka


def test_a_channel_that_is_written_is_known(kafka: str) -> None:
    ensure_topics(kafka, [settings(CHANNELS)])
    made = ChannelMapping("alerts.followed", "bright", "magnitude < 19", "ann", datetime.now(UTC))
    writer = Writer(producer(kafka))
    with ChannelFollower(kafka) as channels:
        assert channels.wait(30)
        before = [one.mapping.key for one in channels.of("alerts.followed")]
        writer.write(CHANNELS, made.encoded(), key=made.key.encode())
        writer.flush()
        while not (found := channels.of("alerts.followed")):
            assert channels.wait(1)
    assert before == []
    assert [one.mapping.name for one in found] == ["bright"]
