"""What `nightwire relay listen` says of what it hears."""

from nightwire.core.datagrams import HEARTBEAT, Channel, Datagram, encode
from nightwire.multicast.listening import Ear

CHANNEL = Channel("alerts.sim", "239.10.0.1:5400")


def test_a_heartbeat_that_is_none_is_counted_and_ends_nothing() -> None:
    ear = Ear(CHANNEL)
    ear.take(encode(Datagram(HEARTBEAT, CHANNEL.number, 0, 1, 0, -1, 5, 0, 1, b"odd")))
    heard = ear.second()
    assert heard["dropped"] == {"malformed": 1}
    assert heard["heartbeats"] == 0
