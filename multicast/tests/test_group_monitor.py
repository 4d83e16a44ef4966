"""What `nightwire relay listen` says of what it hears."""

from nightwire.core.datagrams import HEARTBEAT, Channel, Datagram, encode
from nightwire.multicast.group_monitor import GroupMonitor

CHANNEL = Channel("alerts.sim", "239.10.0.1:5400")


def test_a_heartbeat_that_is_none_is_counted_and_ends_nothing() -> None:
    ear = GroupMonitor(CHANNEL)
    ear.add(encode(Datagram(HEARTBEAT, CHANNEL.number, 0, 1, 0, -1, 5, 0, 1, b"odd")))
    heard = ear.snapshot()
    assert heard["dropped"] == {"malformed": 1}
    assert heard["heartbeats"] == 0
