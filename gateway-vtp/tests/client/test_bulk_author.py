"""An author of many events, and brokers that hang up, offer nothing, or answer nonsense."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pysequoia import Tsk

from nightwire.gateway import Author, FrameDecoder, Submission, Transport, encode_frame
from nightwire.gateway.client.bulk_author import send_bulk
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.signing.signing_key import SigningKey
from nightwire.gateway.vtp.bulk import OFFER, ivorn_in
from nightwire.gateway.vtp.session import encode_now

Script = Callable[[int, int, bytes], bytes | None]
"""What a broker answers, by the numbers of connection and event; None: it hangs up."""


class Broker:
    """A VTP broker of a few lines, which answers as a script says."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = Address("127.0.0.1", self._listener.getsockname()[1])
        self.connections = 0
        self.taken: list[bytes] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # to close it alone does not wake who accepts
        self._thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        decoder, events = FrameDecoder(), 0
        with connection:
            while chunk := connection.recv(1 << 16):
                decoder.receive(chunk)
                for event in decoder:
                    answer = self._script(number, events, event)
                    events += 1
                    if answer is None:
                        return
                    self.taken.append(event)
                    connection.sendall(answer)


def reply(role: str, event: bytes, *, offer: bool = True, result: str | None = None) -> bytes:
    params = OFFER if offer else ()
    return encode_frame(encode_now(Transport(role, str(ivorn_in(event)), "ivo://b", result, params)))


def submissions(count: int) -> Iterator[Submission]:
    for number in range(count):
        yield Submission(f"{number}", b"<VOEvent ivorn='ivo://a#%d'></VOEvent>" % number)


@pytest.fixture
def broker() -> Iterator[Callable[[Script], Broker]]:
    started: list[Broker] = []

    def start(script: Script) -> Broker:
        started.append(Broker(script))
        return started[-1]

    yield start
    for one in started:
        one.close()


def author(to: Broker, **options: float) -> Author:
    return Author(to.address, **{"timeout": 10.0, "patience": 20.0, **options})  # type: ignore[arg-type]


def test_many_events_go_over_one_connection_and_a_nak_stops_nobody(
    broker: Callable[[Script], Broker],
) -> None:
    one = broker(lambda _, number, event: reply("nak" if number % 10 == 3 else "ack", event, result="why"))
    receipts = list(send_bulk(author(one), submissions(5000), 1))
    assert one.connections == 1
    assert [(one.name, one.verdict) for one in receipts] == [
        (f"{n}", "nak" if n % 10 == 3 else "ack") for n in range(5000)
    ]
    assert {one.attempts for one in receipts} == {1}


def test_a_broker_that_offers_nothing_gets_a_connection_for_each(broker: Callable[[Script], Broker]) -> None:
    one = broker(lambda _, __, event: reply("ack", event, offer=False))
    receipts = list(send_bulk(author(one), submissions(20), 2))
    assert one.connections == 20
    assert sorted(int(one.name) for one in receipts) == list(range(20))


@pytest.mark.slow
def test_what_was_not_answered_when_the_connection_was_lost_is_sent_again(
    broker: Callable[[Script], Broker],
) -> None:
    one = broker(lambda _, number, event: reply("ack", event) if number < 30 else None)
    receipts = list(send_bulk(author(one), submissions(100), 1))
    assert [(one.name, one.verdict) for one in receipts] == [(f"{n}", "ack") for n in range(100)]
    assert one.connections == 4
    assert receipts[-1].attempts == 4


@pytest.mark.slow
def test_an_event_at_which_a_broker_always_hangs_up_is_given_up_and_the_rest_goes_on(
    broker: Callable[[Script], Broker],
) -> None:
    one = broker(lambda _, __, event: None if b"#5'" in event else reply("ack", event))
    receipts = list(send_bulk(replace(author(one), first_pause=0.01), submissions(10), 1))
    verdicts = {one.name: (one.verdict, one.reason) for one in receipts}
    assert verdicts.pop("5") == ("failed", f"{one.address}: the broker hung up without an answer")
    assert set(verdicts.values()) == {("ack", None)}
    assert len(receipts) == 10


def test_nonsense_is_an_answer_to_the_oldest_event(broker: Callable[[Script], Broker]) -> None:
    one = broker(lambda _, __, event: encode_frame(event) if b"#2'" in event else reply("ack", event))
    receipts = {one.name: one for one in send_bulk(author(one), submissions(5), 1)}
    assert "answered nonsense" in (receipts.pop("2").reason or "")
    assert {one.verdict for one in receipts.values()} == {"ack"}


def test_where_nobody_listens_all_are_given_up_together() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    receipts = list(send_bulk(Author(Address("127.0.0.1", port), patience=0), submissions(50), 3))
    assert sorted(int(one.name) for one in receipts) == list(range(50))
    assert {one.verdict for one in receipts} == {"failed"}
    assert all("refused" in (one.reason or "") for one in receipts)


def test_events_are_signed_and_what_cannot_be_signed_is_named(
    broker: Callable[[Script], Broker], tmp_path: Path
) -> None:
    one = broker(lambda _, __, event: reply("ack", event))
    secret = tmp_path / "secret.asc"
    secret.write_text(str(Tsk.generate(user_id="ivo://a")))
    key = SigningKey(secret, None, datetime.now(UTC))
    bad = [Submission("bad", b"no XML"), *submissions(3)]
    receipts = list(send_bulk(Author(one.address, key=key), bad, 1))
    assert sorted((one.name, one.verdict) for one in receipts) == [
        *((str(n), "ack") for n in range(3)),
        ("bad", "failed"),
    ]
    assert all(b"PGP SIGNATURE" in event for event in one.taken)


def test_what_goes_wrong_with_a_document_is_raised_once_the_others_are_answered(
    broker: Callable[[Script], Broker],
) -> None:
    def unreadable() -> Iterator[Submission]:
        yield from submissions(1)
        raise FileNotFoundError("it went away")

    receipts = send_bulk(author(broker(lambda _, __, event: reply("ack", event))), unreadable(), 2)
    assert next(receipts).verdict == "ack"
    with pytest.raises(FileNotFoundError, match="went away"):
        next(receipts)
