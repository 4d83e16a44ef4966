"""A subscriber, from our side: its acks, its filters, and what it asks for."""

from contextlib import suppress

import pytest

from nightwire.gateway import Transport
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.fanout.subscriber_state import SubscriberState
from nightwire.gateway.net.limits import UNASKED_BURST, UNASKED_RATE, FloodError
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.session import encode_now
from nightwire.gateway.xpath.filters import FilterList


def subscriber() -> SubscriberState:
    return SubscriberState(FilterList(), last_message=0.0)


def event(offset: int, ivorn: str) -> Event:
    return Event("voevents", 0, offset, ivorn, "observation", b"<VOEvent/>")


def test_acks_count_once_and_only_for_what_was_sent() -> None:
    peer = subscriber()
    for offset, ivorn in enumerate(("ivo://a#1", "ivo://a#2", "ivo://a#2")):
        peer.event_sent(event(offset, ivorn))
    for ivorn in ("ivo://a#2", "ivo://a#9", "ivo://a#2", "ivo://a#2"):
        peer.receive(encode_now(Transport("ack", ivorn, "ivo://telescope")), 1.0)
    assert (peer.sent, peer.acked, peer.unacked) == (3, 2, 1)
    peer.receive(encode_now(Transport("nak", "ivo://a#1", result="no")), 2.0)
    assert (peer.naked, peer.unacked) == (1, 0)
    assert peer.name == "ivo://telescope"


def test_a_later_authenticate_replaces_the_filters_and_an_empty_one_clears_them() -> None:
    peer = subscriber()
    for texts in (["//Who", "//["], ["//What"], []):
        params = tuple(("xpath-filter", text) for text in texts)
        filters = peer.receive(encode_now(Transport("authenticate", "ivo://b", params=params)), 1.0)
        assert filters is not None
        assert [one.text for one in filters.filters] == [text for text in texts if text != "//["]


def test_a_peer_says_what_it_takes_and_how_far_back_it_wants_to_begin() -> None:
    peer = subscriber()
    for frame, replay in (("many", "-1"), ("9" * 5000, "9" * 5000), ("200000", "60")):
        params = (("max-frame", frame), ("replay", replay))
        peer.receive(encode_now(Transport("authenticate", "ivo://b", params=params)), 1.0)
        if frame != "200000":
            assert (peer.max_frame, peer.replay) == (None, None)
    assert (peer.max_frame, peer.replay) == (200_000, 60.0)


def test_silence_ends_with_any_message_and_what_is_no_message_is_refused() -> None:
    peer = subscriber()
    assert peer.gone_at(60.0) == 150.0
    peer.receive(encode_now(Transport("iamalive", "ivo://b")), 8.0)
    assert peer.gone_at(60.0) == 158.0
    with pytest.raises(XMLRefusedError):
        peer.receive(b"<VOEvent/>", 9.0)


@pytest.mark.parametrize("role", ["ack", "nak", "iamalive", "authenticate", "nonsense"])
def test_what_nobody_asked_for_has_a_rate(role: str) -> None:
    peer, message = subscriber(), encode_now(Transport(role, "ivo://b#1", "ivo://telescope"))

    def receive(many: int, now: float) -> None:
        for _ in range(many):
            with suppress(XMLRefusedError):
                peer.receive(message, now)

    receive(UNASKED_BURST // len(message), 1.0)
    receive(1, 1.0 + len(message) / UNASKED_RATE)
    with pytest.raises(FloodError, match="nobody asked for"):
        receive(1, 1.0 + len(message) / UNASKED_RATE)


def test_an_answer_to_each_event_and_iamalive_is_no_flood_however_late_and_many() -> None:
    peer = subscriber()
    for offset in range(20_000):
        peer.event_sent(event(offset, f"ivo://a#{offset}"))
    peer.owed += 1000  # iamalives
    for offset in range(20_000):
        peer.receive(encode_now(Transport("ack", f"ivo://a#{offset}")), 1.0)
    for _ in range(1000):
        peer.receive(encode_now(Transport("iamalive", "ivo://b")), 1.0)
    assert peer.owed == 0
