"""Outlets as channels are mapped: one that is refused."""

import time
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from nightwire.core.channels import ChannelMapping, HeldMapping
from nightwire.core.datagrams import Channel, parse_group
from nightwire.multicast import mapped
from nightwire.multicast.announcing import ChannelTakenError
from nightwire.multicast.outlet import Outlet, Pace
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import Position

GROUP = "239.77.5.7:45119"


def test_an_outlet_whose_group_was_taken_is_opened_later_and_that_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "AGAIN", 0.0, raising=False)
    mapping = ChannelMapping("alerts.sim", "one", "TRUE", "me", datetime.now(UTC), group=GROUP)
    tries: list[str] = []

    def opened(one: ChannelMapping) -> Outlet:
        tries.append(one.name)
        if len(tries) < 3:
            raise ChannelTakenError("a relay at work has it")
        packer = Packer(Channel(one.topic, GROUP), 1400)
        return Outlet(packer, parse_group(GROUP, "127.0.0.1"), Pace(1e6), 1)

    outlets = mapped.MappedOutlets(lambda: [HeldMapping(mapping, 0)], opened)
    positions = {0: Position(1, 10, 9)}
    with ExitStack() as exits:
        exits.callback(outlets.close)
        deadline = time.monotonic() + 10.0
        while not (found := outlets.refresh(positions)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [one.last for one in found] == [{0: 9}]
    assert ["at work" in one.message for one in caplog.records].count(True) == 1
