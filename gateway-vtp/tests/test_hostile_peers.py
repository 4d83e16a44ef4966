"""Peers that mean harm, all at once, while others are served: memory stays, and no ack is a lie."""

import random
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from nightwire.gateway import (
    Author,
    FrameDecoder,
    FrameError,
    Submission,
    Transport,
    element_bytes,
    encode_frame,
    read_transport,
)
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.voevent.xml import parse_xml
from nightwire.gateway.vtp.session import encode_now
from nightwire.gateway.vtp.transport import is_transport
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka

Start = Callable[..., Any]
"""Starts a gateway with options: a `GatewayProcess` of conftest."""

STRICT = ("--frame-timeout", "3", "--author-timeout", "5", "--author-memory", "4", "--max-per-address", "400")
PART = (1 << 20).to_bytes(4, "big") + b"<VOEvent>" + b"x" * 1_000_000
"""Most of a frame of the longest kind."""
PARTS = 200
"""So many of them are more than `ROOM`."""
ROOM = 96 << 20
"""Most growth of the gateway under attack: twice --author-memory, and Python's own. [byte]"""


def memory(gateway: Any, what: str) -> int:
    """Return the memory of the gateway's process: VmRSS, now, or VmHWM, its peak. [byte]"""
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith(what)))


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def answers(port: int, sent: bytes) -> list[Transport]:
    """Send *sent* and hang up our half; return what is answered until the gateway hangs up."""
    decoder, found = FrameDecoder(), []
    with suppress(ConnectionError, FrameError), closing(connect(port)) as connection:
        connection.sendall(sent)
        with suppress(OSError):  # the gateway may have hung up meanwhile
            connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(1 << 16):
            decoder.receive(chunk)
            found += [read_transport(root) for root in map(parse_xml, decoder) if is_transport(root)]
    return found


@contextmanager
def siege(gateway: Any, seed: int) -> Iterator[None]:
    """Hold connections open, to both ports, that send slowly, half a frame, or nothing."""
    kinds = [PART, b"\x00", b"\x00\x00\x10\x00<V", b""] * 10
    with ExitStack() as held:
        for port, many in ((gateway.authors, kinds + [PART] * PARTS), (gateway.subscribers, kinds)):
            for sent in many[seed % 4 :]:
                peer = held.enter_context(closing(connect(port)))
                with suppress(ConnectionError, TimeoutError):
                    peer.settimeout(0.2)
                    peer.sendall(sent)
        yield


def nuisance(port: int, choice: random.Random) -> list[Transport]:
    """Send one of the things that a gateway should survive."""
    bomb = b"<!DOCTYPE v [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]><VOEvent ivorn='ivo://a/b#1'>&b;</VOEvent>"
    return answers(
        port,
        choice.choice(
            (
                choice.randbytes(choice.randint(1, 3000)),
                b"\xff\xff\xff\xff" + b"x" * 1000,
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                encode_frame(bomb),
                encode_frame(b"<a>" * 5000),
                encode_frame(b"<VOEvent " + b"a" * 90_000),
                b"\x00\x00\x10\x00half",
                b"",
            )
        ),
    )


def damaged(document: bytes, choice: random.Random) -> bytes:
    """Return *document* with one byte changed."""
    at = choice.randrange(len(document))
    return document[:at] + choice.randbytes(1) + document[at + 1 :]


def besiege(
    gateway: Any, documents: dict[str, bytes], connections: int, seed: int
) -> tuple[set[str], list[Transport]]:
    """Attack *gateway* while an author sends *documents*; return his acks, and all answers."""
    choice = random.Random(seed)
    author = Author(Address("127.0.0.1", gateway.authors), timeout=60, patience=60)
    with siege(gateway, seed), ThreadPoolExecutor(8) as pool:
        good = pool.map(author.send, [Submission(name, document) for name, document in documents.items()])
        bad = [
            pool.submit(nuisance, port, random.Random(choice.random()))
            for port in choice.choices((gateway.authors, gateway.subscribers), k=connections)
        ]
        harmed = [encode_frame(damaged(document, choice)) for document in documents.values()]
        told = answers(gateway.authors, b"".join(harmed))
        told += [answer for future in bad for answer in future.result()]
        return {receipt.name for receipt in good if receipt.verdict == "ack"}, told


@pytest.fixture
def withstands(
    start_gateway: Start,
    telescope: Callable[..., Any],
    ivorns: Callable[[int], list[str]],
    logged: Callable[[], dict[str, list[bytes]]],
) -> Callable[[int, int], None]:
    """Return a function that besieges a gateway, so often with so many connections in turn."""

    def withstands(rounds: int, connections: int) -> None:
        gateway = start_gateway(*STRICT)
        listener = telescope(gateway.subscribers)
        documents = {ivorn: packet(ivorn) for ivorn in ivorns(60 * rounds)}
        parts = [dict(list(documents.items())[start::rounds]) for start in range(rounds)]
        before, acked, told = memory(gateway, "VmRSS"), set[str](), list[Transport]()
        for seed, part in enumerate(parts):
            more, answered = besiege(gateway, part, connections, seed)
            acked |= more
            told += answered
        assert acked == documents.keys()
        listener.wait_for(len(documents))
        # a copy that was damaged before its element is the same event, and may have come first
        assert set(map(element_bytes, documents.values())) <= set(map(element_bytes, listener.events))
        log = logged()
        promised = {answer.origin for answer in told if answer.role == "ack"}
        assert [ivorn for ivorn in acked | promised if ivorn not in log] == []
        assert memory(gateway, "VmHWM") - before < ROOM
        assert gateway.stop() == 0

    return withstands


def test_a_besieged_gateway_serves_others_in_bounded_memory_and_acknowledges_only_what_kafka_has(
    withstands: Callable[[int, int], None],
) -> None:
    withstands(3, 150)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_connections_in_turn_change_nothing(
    withstands: Callable[[int, int], None],
) -> None:
    withstands(10, 10_000)


@pytest.mark.parametrize("door", ["author", "subscriber"])
def test_a_peer_that_floods_is_hung_up_on_and_counted_and_others_are_served(
    door: str,
    start_gateway: Start,
    telescope: Callable[..., Any],
    ivorns: Callable[[int], list[str]],
    metric: Callable[..., float],
) -> None:
    gateway = start_gateway("--no-accounts")
    listener = telescope(gateway.subscribers)
    for role in ("ack", "iamalive", "authenticate"):
        frame = encode_frame(encode_now(Transport(role, "ivo://nobody/asked#1", "ivo://test/flood")))
        with closing(connect(getattr(gateway, f"{door}s"))) as flood, pytest.raises(ConnectionError):
            flood.sendall(frame * 100_000)
    author = Author(Address("127.0.0.1", gateway.authors))
    for ivorn in ivorns(300):  # their acks are as many, and asked for
        assert author.send(Submission(ivorn, packet(ivorn))).verdict == "ack"
    listener.wait_for(300)
    dropped = f'nightwire_gateway_connections_dropped_total{{reason="flood",role="{door}"}}'
    assert metric(gateway, dropped) == 3


def test_unfinished_frames_of_all_connections_have_one_budget(
    start_gateway: Start, metric: Callable[..., float]
) -> None:
    """Each is a bit shorter than the one before, so none is above the average of those there."""
    gateway = start_gateway("--no-accounts", "--frame-timeout", "60", "--author-memory", "16")
    before = memory(gateway, "VmRSS")
    kinds = [(gateway.authors, PART, 1_000_000 - 500 * number) for number in range(200)]
    kinds += [(gateway.subscribers, b"\0\0\xff\xff" + b"x" * 65_000, 65_000)] * 300
    with ExitStack() as held:
        for port, sent, size in kinds:
            peer = held.enter_context(closing(connect(port)))
            with suppress(ConnectionError):
                peer.sendall(sent[:size])
        text = 'nightwire_gateway_connections_dropped_total{reason="memory",role="author"}'

        def cut_off() -> bool:
            with suppress(StopIteration):  # before the first there is no such line
                return metric(gateway, text) >= 185
            return False

        until(cut_off, "all but a few to be cut off")
        assert metric(gateway, "nightwire_gateway_intake_bytes") <= 16 << 20
    assert memory(gateway, "VmHWM") - before < 48 << 20


def test_a_subscriber_that_says_it_is_alive_and_reads_nothing_is_left(
    start_gateway: Start, ivorns: Callable[[int], list[str]], metric: Callable[..., float]
) -> None:
    gateway = start_gateway("--iamalive", "0.5", "--no-accounts")
    alive = encode_frame(encode_now(Transport("iamalive", "ivo://nightwire/gateway", "ivo://test/deaf")))
    author = Author(Address("127.0.0.1", gateway.authors))
    dropped = 'nightwire_gateway_connections_dropped_total{reason="slow",role="subscriber"} '
    with closing(socket.socket()) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        deaf.connect(("127.0.0.1", gateway.subscribers))

        def left() -> bool:
            with suppress(ConnectionError):
                deaf.sendall(alive)
            return dropped in httpx.get(f"http://127.0.0.1:{gateway.metrics}/metrics").text

        padding = "<What><Description>" + "x" * 90_000 + "</Description></What>"
        for ivorn in ivorns(60):
            assert author.send(Submission(ivorn, packet(ivorn, what=padding))).verdict == "ack"
        until(left, "it to be hung up on")
