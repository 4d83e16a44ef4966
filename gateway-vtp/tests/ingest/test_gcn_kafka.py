"""Events of GCN's Kafka, let in by tokens, through a gateway of ours to a telescope."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.kafka import headers_of, read_to_end
from tests._secure_broker import SecureBroker, environment, secure_broker
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka

Ivorns = Callable[[int], list[str]]
Start = Callable[..., Any]
Subscribe = Callable[..., Any]
Metric = Callable[..., float]


@pytest.fixture(scope="module")
def gcn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """Yield a Kafka with an issuer of tokens, as GCN has it."""
    with secure_broker(tmp_path_factory.mktemp("gcn")) as one:
        yield one


@pytest.fixture
def credentials(gcn: SecureBroker, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Put what GCN knows its readers by into the environment; return it."""
    client = gcn.oauth_client
    secrets = {
        "NIGHTWIRE_GCN_CLIENT_ID": client.pop("sasl.oauthbearer.client.id"),
        "NIGHTWIRE_GCN_CLIENT_SECRET": client.pop("sasl.oauthbearer.client.secret"),
    }
    variables = secrets | environment(client, "NIGHTWIRE_GCN_KAFKA_")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


@pytest.fixture
def stream(gcn: SecureBroker) -> str:
    """Return a topic of this test's own at GCN."""
    return make(gcn, f"gcn.classic.voevent.T{os.urandom(3).hex()}_A")


def make(gcn: SecureBroker, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": gcn.plain})
    for done in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        done.result(30)
    return topic


def notify(gcn: SecureBroker, topic: str, *packets: bytes) -> None:
    """Write as GCN does."""
    writer = Producer({"bootstrap.servers": gcn.plain, "linger.ms": 5})
    for one in packets:
        writer.produce(topic, one)
    assert writer.flush(60) == 0


def options(gcn: SecureBroker, stream: str) -> tuple[str, ...]:
    return ("--gcn", "--gcn-bootstrap", gcn.oauth, "--gcn-topic", stream.removesuffix("A") + "*")


def test_what_gcn_sends_reaches_a_telescope_once_whatever_is_killed_meanwhile(
    gcn: SecureBroker,
    credentials: dict[str, str],
    stream: str,
    start_gateway: Start,
    telescope: Subscribe,
    ivorns: Ivorns,
    kafka: str,
) -> None:
    packets = [packet(ivorn) + b"<!-- as GCN wrote it -->\n" for ivorn in ivorns(9)]
    notify(gcn, stream, packets[0])  # before we ever came
    gateway = start_gateway(*options(gcn, stream))
    until(lambda: "GCN: reading 1 topics" in gateway.log.read_text(), "GCN's topic")
    listener = telescope(gateway.subscribers)
    notify(gcn, stream, packets[1], b"not XML", packets[1], packets[2])
    assert sorted(listener.wait_for(2)) == packets[1:3]  # of two partitions
    gateway.kill()
    later = make(gcn, stream.removesuffix("A") + "B")
    notify(gcn, stream, *packets[3:5])
    notify(gcn, later, packets[5])
    gateway.start()
    until(lambda: "GCN: reading 2 topics" in gateway.log.read_text(), "GCN's new topic")
    until(lambda: len(stored(kafka, packets)) == 5, "what came while the gateway was away")
    listener = telescope(gateway.subscribers)
    gcn.broker.kill()
    gcn.broker.start()
    notify(gcn, stream, *packets[6:])
    assert sorted(listener.wait_for(3)) == packets[6:]
    assert gateway.stop() == 0
    assert stored(kafka, packets) == sorted(packets[1:])
    mine = [one for one in read_accounts(kafka) if one.source.endswith((stream, later))]
    assert discrepancies(mine) == []
    assert (sum(one.read for one in mine), sum(one.dead_lettered for one in mine)) == (10, 1)
    found = [one for one in read_to_end(kafka, ["dead-letters"]) if one.value() == b"not XML"]
    assert f"gcn/{stream}[0]@2".encode() in [headers_of(one)["source"] for one in found]
    assert not any(credentials[name] in gateway.log.read_text() for name in credentials if "SECRET" in name)


def stored(kafka: str, packets: list[bytes]) -> list[bytes]:
    """Return those of *packets* that lie in `voevents`, once for each time that they do."""
    found = [message.value() or b"" for message in read_to_end(kafka, ["voevents"])]
    return sorted(one for one in packets for value in found if one in value)


def test_without_a_good_secret_the_gateway_serves_and_says_what_is_wrong(
    gcn: SecureBroker,
    credentials: dict[str, str],
    stream: str,
    start_gateway: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NIGHTWIRE_GCN_CLIENT_SECRET", "by no means this one")
    gateway = start_gateway(*options(gcn, stream))
    until(lambda: "GCN's Kafka: " in gateway.log.read_text(), "a complaint")
    assert "by no means this one" not in gateway.log.read_text()
    assert gateway.stop() == 0
