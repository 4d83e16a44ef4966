"""Our own side of a connection to a remote broker."""

from nightwire.gateway import Transport
from nightwire.gateway.vtp.session import UpstreamSession


def test_as_a_subscriber_we_answer_iamalive_and_send_filters_when_greeted() -> None:
    we = UpstreamSession("ivo://us", ["//Who", "//What"])
    assert we.answer(Transport("iamalive", "ivo://b")) == Transport("iamalive", "ivo://b", "ivo://us")
    answer = we.answer(Transport("authenticate", "ivo://b"))
    assert answer is not None
    assert (answer.role, answer.xpath_filters) == ("authenticate", ["//Who", "//What"])
    assert we.answer(Transport("ack", "ivo://b")) is None
    big = UpstreamSession("ivo://us", max_frame=1 << 20, replay=3600.0).answer(
        Transport("authenticate", "ivo://b")
    )
    assert big is not None
    assert big.params == (("max-frame", "1048576"), ("replay", "3600"))
