"""Outlets as channels are mapped: one that is refused, or late."""

import threading
import time
from contextlib import closing
from datetime import UTC, datetime

import pytest
from confluent_kafka import KafkaException

from nightwire.core.channels import ChannelMapping, HeldMapping
from nightwire.core.datagrams import Channel, parse_group
from nightwire.multicast import mapped
from nightwire.multicast.announcing import ChannelTakenError
from nightwire.multicast.outlet import Outlet, Pace
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import Position

GROUP = "239.77.5.7:45119"
MAPPING = ChannelMapping("alerts.sim", "one", "TRUE", "me", datetime.now(UTC), group=GROUP)
POSITIONS = {0: Position(1, 10, 9)}


def outlet_of(one: ChannelMapping) -> Outlet:
    """Return the outlet of a channel."""
    return Outlet(Packer(Channel(one.topic, GROUP), 1400), parse_group(GROUP, "127.0.0.1"), Pace(1e6), 1)


def last_sent(outlets: mapped.MappedOutlets) -> list[dict[int, int]]:
    """Return what the outlets say that they sent last, once there are some."""
    deadline = time.monotonic() + 10.0
    while not (found := outlets.refresh(POSITIONS)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [one.last for one in found]


@pytest.mark.parametrize("error", [ChannelTakenError("a relay at work has it"), KafkaException("it is away")])
def test_an_outlet_that_cannot_be_opened_is_opened_later_and_that_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name in ("AGAIN", "SOON"):
        monkeypatch.setattr(mapped, name, 0.0, raising=False)
    tries: list[str] = []

    def opened(one: ChannelMapping) -> Outlet:
        tries.append(one.name)
        if len(tries) < 3:
            raise error
        return outlet_of(one)

    with closing(mapped.MappedOutlets(lambda: [HeldMapping(MAPPING, 0)], opened)) as outlets:
        assert last_sent(outlets) == [{0: 9}]
    assert [str(error) in one.message for one in caplog.records].count(True) == 1


@pytest.mark.timeout(30)
def test_while_kafka_does_not_answer_about_an_outlet_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mapped, "WAIT", 0.05, raising=False)
    answered = threading.Event()

    def opened(one: ChannelMapping) -> Outlet:
        answered.wait()
        return outlet_of(one)

    with closing(mapped.MappedOutlets(lambda: [HeldMapping(MAPPING, 0)], opened)) as outlets:
        assert [*outlets.refresh(POSITIONS)] == [*outlets.refresh(POSITIONS)] == []
        answered.set()
        assert last_sent(outlets) == [{0: 9}]
