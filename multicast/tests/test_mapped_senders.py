"""Senders of mapped channels: one that is refused, or late."""

import threading
from contextlib import closing
from datetime import UTC, datetime

import pytest
from confluent_kafka import KafkaException

from nightwire.core.channels import ChannelMapping, CurrentMapping
from nightwire.core.datagrams import Channel, parse_group
from nightwire.multicast import mapped_senders
from nightwire.multicast.announcement import GroupInUseError
from nightwire.multicast.group_sender import GroupSender, RateLimiter
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import Position
from tests._waiting import until

GROUP = "239.77.5.7:45119"
MAPPING = ChannelMapping("alerts.sim", "one", "TRUE", "me", datetime.now(UTC), group=GROUP)
POSITIONS = {0: Position(1, 10, 9)}


def sender_of(one: ChannelMapping) -> GroupSender:
    """Return the sender of a channel."""
    return GroupSender(
        Packer(Channel(one.topic, GROUP), 1400), parse_group(GROUP, "127.0.0.1"), RateLimiter(1e6), 1
    )


def last_sent(senders: mapped_senders.MappedSenders) -> list[dict[int, int]]:
    """Return the last offsets that the senders sent, once there are some."""
    return [one.last for one in until(lambda: senders.refresh(POSITIONS), tick=0.01)]


@pytest.mark.parametrize("error", [GroupInUseError("a relay at work has it"), KafkaException("it is away")])
def test_a_sender_that_cannot_be_opened_is_opened_later_and_that_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name in ("RETRY_REFUSED", "RETRY_UNAVAILABLE"):
        monkeypatch.setattr(mapped_senders, name, 0.0)
    tries: list[str] = []

    def opened(one: ChannelMapping) -> GroupSender:
        tries.append(one.name)
        if len(tries) < 3:
            raise error
        return sender_of(one)

    with closing(mapped_senders.MappedSenders(lambda: [CurrentMapping(MAPPING, 0)], opened)) as senders:
        assert last_sent(senders) == [{0: 9}]
    assert [str(error) in one.message for one in caplog.records].count(True) == 1


@pytest.mark.timeout(30)
def test_while_kafka_does_not_answer_about_a_sender_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mapped_senders, "OPEN_WAIT", 0.05)
    answered = threading.Event()

    def opened(one: ChannelMapping) -> GroupSender:
        answered.wait()
        return sender_of(one)

    with closing(mapped_senders.MappedSenders(lambda: [CurrentMapping(MAPPING, 0)], opened)) as senders:
        assert [*senders.refresh(POSITIONS)] == [*senders.refresh(POSITIONS)] == []
        answered.set()
        assert last_sent(senders) == [{0: 9}]
