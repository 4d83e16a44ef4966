from typing import Any

import pytest

from nightwire.gateway import Transport
from nightwire.gateway._filters import FilterList
from nightwire.gateway._session import Subscriber, Upstream, say
from nightwire.gateway._settings import Address, read_address
from nightwire.gateway._xml import XMLRefusedError


def subscriber() -> Subscriber:
    return Subscriber(FilterList(), heard=0.0)


def test_acks_count_once_and_only_for_what_was_sent() -> None:
    peer = subscriber()
    for ivorn in ("ivo://a#1", "ivo://a#2", "ivo://a#2"):
        peer.event_sent(ivorn)
    for ivorn in ("ivo://a#2", "ivo://a#9", "ivo://a#2", "ivo://a#2"):
        peer.receive(say(Transport("ack", ivorn, "ivo://telescope")), 1.0)
    assert (peer.sent, peer.acked, peer.unacked) == (3, 2, 1)
    peer.receive(say(Transport("nak", "ivo://a#1", result="no")), 2.0)
    assert (peer.naked, peer.unacked) == (1, 0)
    assert peer.name == "ivo://telescope"


def test_a_peer_that_never_acknowledges_costs_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightwire.gateway._session.MAX_UNACKED", 10)
    peer = subscriber()
    for number in range(1000):
        peer.event_sent(f"ivo://a#{number}")
    assert len(peer._order) == 10
    assert len(peer._unacked) == 10
    assert peer.unacked == 1000


def test_a_later_authenticate_replaces_the_filters_and_an_empty_one_clears_them() -> None:
    peer = subscriber()
    for texts in (["//Who", "//["], ["//What"], []):
        params = tuple(("xpath-filter", text) for text in texts)
        filters = peer.receive(say(Transport("authenticate", "ivo://b", params=params)), 1.0)
        assert filters is not None
        assert [one.text for one in filters.filters] == [text for text in texts if text != "//["]


def test_silence_ends_with_any_message_and_what_is_no_message_is_refused() -> None:
    peer = subscriber()
    assert peer.silent_for(10.0) == 10.0
    peer.receive(say(Transport("iamalive", "ivo://b")), 8.0)
    assert peer.silent_for(10.0) == 2.0
    with pytest.raises(XMLRefusedError):
        peer.receive(b"<VOEvent/>", 9.0)


def test_as_a_subscriber_we_answer_iamalive_and_send_filters_when_greeted() -> None:
    we = Upstream("ivo://us", ["//Who", "//What"])
    assert we.answer(Transport("iamalive", "ivo://b")) == Transport("iamalive", "ivo://b", "ivo://us")
    answer = we.answer(Transport("authenticate", "ivo://b"))
    assert answer is not None
    assert (answer.role, answer.xpath_filters) == ("authenticate", ["//Who", "//What"])
    assert we.answer(Transport("ack", "ivo://b")) is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a.b:1", ("a.b", 1)),
        ("a.b", ("a.b", 8099)),
        ("[::1]:7", ("::1", 7)),
        ("[::1]", ("::1", 8099)),
        ("tls://a.b", ("a.b", 8099, True)),
        ("tls://[::1]:7", ("::1", 7, True)),
    ],
)
def test_addresses(text: str, address: Any) -> None:
    found = read_address(text, 8099)
    assert found == Address(*address)
    assert read_address(str(found), 1) == found


@pytest.mark.parametrize("text", ["", ":1", "a:b", "a:99999", "tls://", "tls://:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="no HOST:PORT"):
        read_address(text, 8099)
