"""Signatures between gateways, authors, brokers and subscribers, on a real Kafka."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pysequoia import Tsk

from nightwire.gateway import FrameDecoder, Transport, encode_frame, read_transport
from nightwire.gateway.signing.bundled_signatures import bundled_signatures
from nightwire.gateway.signing.keyring import Keyring
from nightwire.gateway.signing.signing_key import SigningKey
from nightwire.gateway.signing.verification import Finding, check_signature
from nightwire.gateway.voevent.xml import parse_xml
from nightwire.gateway.vtp.session import encode_now
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka

Ivorns = Callable[[int], list[str]]
Start = Callable[..., Any]
Metric = Callable[..., float]


@pytest.fixture(scope="module")
def key() -> Tsk:
    return Tsk.generate(user_id="ivo://test")


@pytest.fixture
def secret(key: Tsk, tmp_path: Path) -> Path:
    (tmp_path / "secret.asc").write_text(str(key))
    return tmp_path / "secret.asc"


@pytest.fixture
def keyring(key: Tsk, tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "test.asc").write_text(str(key.extract_certificate()))
    return tmp_path / "keys"


class Broker:
    """A remote broker that greets, sends one frame, and keeps what it is told."""

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.told: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        decoder = FrameDecoder()
        with connection:
            greeting = encode_now(Transport("authenticate", "ivo://remote/broker"))
            connection.sendall(encode_frame(greeting) + encode_frame(self._document))
            while chunk := connection.recv(1 << 16):
                decoder.receive(chunk)
                self.told += decoder

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def unsigned(ivorns: Ivorns) -> Iterator[Broker]:
    broker = Broker(packet(ivorns(1)[0]))
    yield broker
    broker.close()


def test_only_who_signs_is_believed_and_only_who_signs_is_let_in(
    start_gateway: Start,
    telescope: Callable[..., Any],
    ivorns: Ivorns,
    metric: Metric,
    unsigned: Broker,
    key: Tsk,
    secret: Path,
    keyring: Path,
    tmp_path: Path,
) -> None:
    required = (
        "--require-signature",
        "authors",
        "--require-signature",
        "subscribers",
        "--keyring",
        str(keyring),
    )
    one = start_gateway(*required, "--answer-timeout", "1", name="one")
    remotes = ("--remote", f"127.0.0.1:{one.subscribers}", "--remote", f"127.0.0.1:{unsigned.port}")
    believing = ("--require-signature", "brokers", "--keyring", str(keyring), "--sign-key", str(secret))
    two = start_gateway(*remotes, *believing, "--no-accounts", name="two")
    listener = telescope(two.subscribers)  # of whom nothing is asked
    stranger, mute = telescope(one.subscribers, filters=("//x",)), telescope(one.subscribers)
    told = "nightwire_gateway_signatures_total"
    until(lambda: metric(one, told + '{finding="good",role="subscriber"}') == 1, "two to be let in")

    (tmp_path / "event.xml").write_bytes(packet(ivorns(1)[0]))
    plain = one.send("--json", str(tmp_path / "event.xml"))
    signed = one.send("--json", "--sign", str(secret), str(tmp_path / "event.xml"))
    (refused,), (accepted,) = (json.loads(done.stdout)["results"] for done in (plain, signed))
    assert (refused["verdict"], refused["reason"]) == (
        "nak",
        "it is not signed, and signatures are required here",
    )
    assert accepted["verdict"] == "ack"
    (document,) = listener.wait_for(1)
    assert document.startswith((tmp_path / "event.xml").read_bytes() + b"<!--\n=====BEGIN PGP SIGNATURE=====")

    for peer, reason in ((stranger, "it is not signed"), (mute, "no signed answer")):
        until(lambda peer=peer: [x.role for x in peer.heard] == ["nak"], "a nak")
        assert reason in (peer.heard[0].result or "")
        assert peer.events == []

    until(lambda: len(unsigned.told) == 2, "two to answer the remote broker")
    (proof,) = bundled_signatures(unsigned.told[0])
    known = Keyring([key.extract_certificate()])
    verdict = check_signature(proof.signed, proof.armor, known, datetime.now(UTC), timedelta(minutes=1))
    assert verdict.finding is Finding.GOOD
    answer = read_transport(parse_xml(unsigned.told[1]))
    assert (answer.role, (answer.result or "")[:17]) == ("ack", "not taken: it is ")
    assert metric(two, 'nightwire_gateway_events_received_total{outcome="unsigned",source="broker"}') == 1
    assert len(listener.events) == 1
    assert [two.stop(), one.stop()] == [0, 0]


def test_keys_are_taken_away_while_it_runs(
    start_gateway: Start, ivorns: Ivorns, key: Tsk, secret: Path, keyring: Path, tmp_path: Path
) -> None:
    gateway = start_gateway("--require-signature", "authors", "--keyring", str(keyring))
    signing = SigningKey(secret, None, datetime.now(UTC))
    file = tmp_path / "event.xml"

    def reason() -> str:
        file.write_bytes(signing.sign(packet(ivorns(1)[0])))
        return str(json.loads(gateway.send("--json", str(file)).stdout)["results"][0]["reason"])

    assert reason() == "None"
    (keyring / "revoked.asc").write_bytes(bytes(key.extract_certificate().revoke(key.certifier())))
    until(lambda: "which is revoked" in reason(), "the revocation to be read")
