"""Bulk submission, from the author's side, on literal bytes and against odd brokers."""

from collections import deque
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway import FrameDecoder, FrameError, Transport, encode_frame, encode_transport
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.bulk import OFFER, BulkSession, InFlight, ivorn_in, offered_by
from nightwire.gateway.vtp.submission import Receipt, Submission

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def packet(ivorn: str) -> bytes:
    return f"<VOEvent ivorn='{ivorn}'/>".encode()


def answer(role: str, origin: str, *, offer: int | None = None, result: str | None = None) -> bytes:
    params = () if offer is None else (("bulk-submission", str(offer)),)
    return encode_frame(encode_transport(Transport(role, origin, "ivo://b", result, params), NOON))


def sent(number: int) -> InFlight:
    return InFlight(Submission(f"file {number}", packet(f"ivo://a#{number}")))


def test_a_frame_and_an_offer_on_the_wire() -> None:
    submission = BulkSession()
    assert submission.send(sent(1)) == b"\x00\x00\x00\x1c<VOEvent ivorn='ivo://a#1'/>"
    offer = encode_transport(Transport("ack", "ivo://a#1", "ivo://b", params=OFFER), NOON)
    assert b'<Meta><Param name="bulk-submission" value="4096"/></Meta>' in offer


def test_the_first_event_is_alone_until_it_is_answered() -> None:
    submission = BulkSession()
    assert submission.room == 1
    submission.send(sent(1))
    assert submission.room == 0
    assert not submission.over
    list(submission.receive(answer("ack", "ivo://a#1", offer=3)))
    assert submission.room == 3


def test_a_broker_that_offers_nothing_gets_one_event() -> None:
    submission = BulkSession()
    submission.send(sent(1))
    list(submission.receive(answer("ack", "ivo://a#1")))
    assert submission.over
    assert submission.room == 0


def test_a_nak_offers_as_well_and_a_later_offer_changes_nothing() -> None:
    submission = BulkSession(window=10)
    submission.send(sent(1))
    list(submission.receive(answer("nak", "ivo://a#1", offer=2, result="no")))
    submission.send(sent(2))
    list(submission.receive(answer("ack", "ivo://a#2", offer=900)))
    assert submission.room == 2


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "٣", "9" * 40])
def test_what_is_no_number_offers_nothing(value: str) -> None:
    assert offered_by(Transport("ack", "ivo://a#1", params=(("bulk-submission", value),))) == 0


def test_answers_go_by_name_and_else_by_order() -> None:
    submission = BulkSession()
    submission.send(sent(0))
    list(submission.receive(answer("ack", "ivo://a#0", offer=9)))
    for event in (InFlight(Submission("garbage", b"no XML")), sent(1), sent(2), sent(2)):
        submission.send(event)
    frames = [
        # a broker names itself where it finds no ivorn
        answer("nak", "ivo://b", result="not well-formed"),
        answer("ack", "ivo://a#2"),  # out of order
        answer("iamalive", "ivo://b"),
        answer("nak", "ivo://a#1", result="no"),
        answer("ack", "ivo://a#2"),
        answer("ack", "ivo://a#7"),  # of nothing
    ]
    receipts = list(submission.receive(b"".join(frames)))
    assert [(one.name, one.verdict, one.reason) for one in receipts] == [
        ("garbage", "nak", "not well-formed"),
        ("file 2", "ack", None),
        ("file 1", "nak", "no"),
        ("file 2", "ack", None),
    ]
    assert submission.unanswered == ()


def test_what_is_no_answer_ends_it() -> None:
    submission = BulkSession()
    submission.send(sent(1))
    with pytest.raises(XMLRefusedError, match="no Transport document"):
        list(submission.receive(encode_frame(packet("ivo://a#1"))))
    with pytest.raises(FrameError):
        list(submission.receive(b"\xff\xff\xff\xff"))
    assert [one.submission.name for one in submission.unanswered] == ["file 1"]


@pytest.mark.parametrize(
    ("document", "ivorn"),
    [
        (b'<v:VOEvent xmlns:v="x" ivorn="ivo://a/b#1">', "ivo://a/b#1"),
        (b"<VOEvent\n\tivorn = ' ivo://a#&lt;&amp;&quot;'>", 'ivo://a#<&"'),
        (b"no XML", None),
    ],
)
def test_the_name_of_an_event_is_found_without_parsing_it(document: bytes, ivorn: str | None) -> None:
    assert ivorn_in(document) == ivorn


events = st.lists(st.integers(0, 5), min_size=1, max_size=30)
"""Numbers of events; equal ones have equal names."""


@given(events, st.integers(1, 6), st.integers(1, 6), st.data())
def test_every_event_is_answered_once_whatever_tcp_does_and_never_too_many_wait(
    numbers: list[int], window: int, offered: int, data: st.DataObject
) -> None:
    submission, waiting = BulkSession(window), deque(enumerate(numbers))
    broker, held = FrameDecoder(), deque[bytes]()
    verdicts = [data.draw(st.sampled_from(["ack", "nak"])) for _ in numbers]
    receipts: list[Receipt] = []
    while len(receipts) < len(numbers):
        for _ in range(min(submission.room, len(waiting))):
            place, number = waiting.popleft()
            broker.receive(submission.send(InFlight(Submission(str(place), packet(f"ivo://a#{number}")))))
        held.extend(broker)
        assert 0 < len(held) <= (min(window, offered) if receipts else 1)
        stream, first = b"", len(receipts)
        for place in range(first, first + data.draw(st.integers(1, len(held)))):
            origin = str(ivorn_in(held.popleft()))
            stream += answer(verdicts[place], origin, offer=None if place else offered)
        cut = data.draw(st.integers(0, len(stream)))
        receipts += [*submission.receive(stream[:cut]), *submission.receive(stream[cut:])]
    assert [(one.name, one.verdict) for one in receipts] == [(str(n), v) for n, v in enumerate(verdicts)]
    assert [one.ivorn for one in receipts] == [f"ivo://a#{number}" for number in numbers]
    assert submission.unanswered == ()
