"""Which datagrams a listener believes that follows the choice of channels."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from nightwire.consumers.source.multicast.group_choice import GroupChoice
from nightwire.consumers.source.multicast.listener import Listener
from nightwire.consumers.source.multicast.reorder_buffer import ReorderBuffer
from nightwire.core.channels import ChannelMapping, channel_of
from nightwire.core.datagrams import HEARTBEAT, Beat, Datagram, encode, encode_beats

GROUP, TOPIC = "239.77.5.9:45117", "alerts.sim"


def mapping(condition: str, group: str = GROUP) -> ChannelMapping:
    """Return a channel with a group."""
    return ChannelMapping(TOPIC, "one", condition, "me", datetime.now(UTC), group=group)


class Chosen(GroupChoice):
    """Chooses what it is told to."""

    def __init__(self, one: ChannelMapping) -> None:
        self.one, self.interface = one, "127.0.0.1"

    def chosen(self) -> Mapping[str, ChannelMapping]:
        """Return the one channel."""
        return {TOPIC: self.one}

    def close(self) -> None:
        """There is nothing to follow."""


class Deaf(Listener):
    """Asks no Kafka what there is."""

    def look(self, *, wait: bool = False) -> None:
        """There is none."""


def heartbeat(of: ChannelMapping, done: int) -> bytes:
    """Return what says of a channel that nothing of it lies up to the offset *done*."""
    body = encode_beats([Beat(0, 1, -1, done)])
    return encode(Datagram(HEARTBEAT, channel_of(of).number, 0, 0, 0, -1, 1_000 + done, 0, 1, body))


def listening(to: ChannelMapping) -> tuple[Listener, Chosen]:
    """Return a listener that has joined the group of *to*, with one partition at offset 0."""
    choice = Chosen(to)
    listener = Deaf(None, "127.0.0.1:1", [TOPIC], choice)
    listener.partitions[TOPIC, 0] = ReorderBuffer(0)
    listener._follow_choice()
    return listener, choice


def take(listener: Listener, raw: bytes) -> tuple[str | None, int]:
    """Let *raw* come; return why it is dropped, and which offset is wanted next."""
    why = listener._take(listener._joined[GROUP], raw, 1.0)
    partition = listener.partitions[TOPIC, 0]
    list(partition.ready())
    return why, partition.next


def test_what_another_channel_on_the_group_leaves_out_is_still_wanted() -> None:
    red, bright = mapping("band = 'r'"), mapping("diaSource.psfFlux > 5")
    listener, choice = listening(red)
    listener._known = {GROUP: [channel_of(bright)]}  # a relay that came later announced it
    listener._take_in()
    assert take(listener, heartbeat(bright, 99)) == ("foreign", 0)
    assert take(listener, heartbeat(red, 9)) == (None, 10)
    choice.one, listener._choose_at = bright, 0.0
    listener._follow_choice()
    assert take(listener, heartbeat(red, 199)) == ("foreign", 10)
    assert take(listener, heartbeat(bright, 49)) == (None, 50)
    listener.close()


def test_a_group_that_cannot_be_joined_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    listener, choice = listening(mapping("TRUE"))
    choice.one, choice.interface = mapping("TRUE", "239.77.5.10:45117"), "no-such-card"
    for _ in range(3):
        listener._choose_at = 0.0
        listener._follow_choice()
    assert [one.levelname for one in caplog.records if "no-such-card" in one.message] == ["WARNING"]
    listener.close()
