"""Whose a position is: the owner behind a name."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from pysequoia import Tsk

from nightwire.gateway import Transport
from nightwire.gateway.fanout.identity import Peer, owner_of, read_peer
from nightwire.gateway.signing.requirements import SubscriberGate
from nightwire.gateway.signing.signing_key import SigningKey
from nightwire.gateway.signing.trust import Trust, TrustFiles
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.vtp.session import encode_now

SUBJECT = ((("organizationName", "Observatory"),), (("commonName", "north"),))


@pytest.mark.parametrize(
    ("certificate", "host", "owner"),
    [
        (None, "192.0.2.1", "192.0.2.1"),
        ({}, "::ffff:192.0.2.1", "192.0.2.1"),
        (None, "2001:db8::7", "2001:db8::/64"),
        ({"subject": SUBJECT}, "192.0.2.1", "certificate organizationName=Observatory, commonName=north"),
        ({"subjectAltName": (("DNS", "a.example"),)}, "192.0.2.1", "certificate DNS=a.example"),
    ],
)
def test_a_certificate_counts_before_the_address(
    certificate: dict[str, object] | None, host: str, owner: str
) -> None:
    assert owner_of(None, certificate, host) == owner


async def test_a_key_counts_before_all(tmp_path: Path) -> None:
    key = Tsk.generate(user_id="ivo://test")
    (tmp_path / "secret.asc").write_text(str(key))
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "test.asc").write_text(str(key.extract_certificate()))
    trust = Trust(TrustFiles(tmp_path / "keys"), timedelta(days=1))
    answer = encode_now(Transport("authenticate", "ivo://broker", "ivo://test"))
    gate = SubscriberGate("ivo://broker", trust, GatewayMetrics(CollectorRegistry()))
    assert not gate.is_open
    gate.verify(SigningKey(tmp_path / "secret.asc", None, datetime.now(UTC)).sign(answer))
    assert (
        owner_of(gate.signer, {"subject": SUBJECT}, "192.0.2.1")
        == f"key {key.extract_certificate().fingerprint}"
    )


@pytest.mark.parametrize("peer", [Peer("voevents", "ivo://a/b", "192.0.2.1"), Peer("voevents", "ivo://a/b")])
def test_a_peer_is_read_from_its_key_in_kafka(peer: Peer) -> None:
    assert read_peer(peer.key) == peer
