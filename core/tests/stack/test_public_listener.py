"""Kafka's public listener: TLS and a password, or nothing; a renewed certificate costs nobody an
alert.
"""

import secrets
import ssl
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from nightwire.core.kafka import consumer, producer
from nightwire.core.stack import Broker, free_port
from nightwire.core.stack.kafka.auth import (
    SUPER_USER,
    client_listener,
    listener_properties,
    operator_credentials,
)
from nightwire.core.stack.kafka.listeners import listening
from nightwire.core.stack.kafka.public_listener import PublicListener
from nightwire.core.tls.public import public_side
from nightwire.core.tls.site import Site
from tests._waiting import until

pytestmark = pytest.mark.kafka

TOPIC = "open"
PASSWORD = secrets.token_urlsafe()
QUIET: Mapping[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}


class Door:
    """A Kafka with a public listener, its operator, and an owner outside."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder / "tls")
        public = public_side(self.site.folder, "127.0.0.1")
        self.listener = PublicListener(public, folder / "kafka", free_port())
        port, controller = free_port(), free_port()
        listeners = listening(client_listener(port), controller, [self.listener.listener()])
        properties = listener_properties(PASSWORD) | listeners
        self.broker = Broker(folder / "kafka", port=port, controller=controller, properties=properties)
        self.broker.start()
        self.operator = AdminClient(
            {"bootstrap.servers": self.broker.bootstrap, **QUIET, **operator_credentials(PASSWORD)}
        )
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        for name in ("ann", SUPER_USER):
            change = UserScramCredentialUpsertion(name, info, b"by no means to be logged")
            (done,) = self.operator.alter_user_scram_credentials([change]).values()
            done.result(60)

    def owner(self, **other: Any) -> dict[str, Any]:
        """Return librdkafka's properties of an owner outside, but for what is *other*."""
        usual = {
            "bootstrap_servers": self.listener.address,
            "security_protocol": "SASL_SSL",
            "ssl_ca_location": str(self.site.ca),
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "ann",
            "sasl_password": "by no means to be logged",
        }
        return {name.replace("_", "."): value for name, value in (usual | other).items()}

    def shown(self) -> str:
        """Return the certificate that Kafka shows to others."""
        return ssl.get_server_certificate(("127.0.0.1", self.listener.port), timeout=60)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    one = Door(tmp_path_factory.mktemp("public"))
    yield one
    one.broker.stop()


def brokers(client: Mapping[str, Any], timeout: float = 20) -> list[str]:
    found = AdminClient({**QUIET, **client}).list_topics(timeout=timeout).brokers
    return [f"{one.host}:{one.port}" for one in found.values()]


def test_an_owner_outside_comes_in_and_stays_outside(door: Door) -> None:
    assert brokers(door.owner()) == [door.listener.address]


@pytest.mark.parametrize(
    "wrong",
    [
        {"security_protocol": "SASL_PLAINTEXT"},
        {"security_protocol": "PLAINTEXT"},
        {"security_protocol": "SSL"},
        {"sasl_password": "a guess"},
        {"sasl_mechanism": "PLAIN", "sasl_username": SUPER_USER, "sasl_password": PASSWORD},
    ],
    ids=["no TLS", "nothing", "no password", "a wrong password", "the stack's own, from elsewhere"],
)
def test_nobody_comes_in_without_tls_and_a_password(door: Door, wrong: dict[str, str]) -> None:
    with pytest.raises(KafkaException):
        brokers(door.owner(**wrong), timeout=3)


def test_who_does_not_know_the_authority_does_not_tell_his_password(door: Door, tmp_path: Path) -> None:
    other = Site(tmp_path)
    other.init()
    with pytest.raises(KafkaException):
        brokers(door.owner(ssl_ca_location=str(other.ca)), timeout=3)


def test_certificates_are_renewed_while_alerts_are_written_and_none_is_lost(door: Door) -> None:
    for done in door.operator.create_topics([NewTopic(TOPIC, 1)]).values():
        done.result(60)
    let_ann_write(door)
    writer = producer(door.listener.address, **door.owner())
    written: list[bytes | None] = []
    refused: list[bytes | None] = []
    leave = threading.Event()

    def told(error: object, message: Message) -> None:
        (refused if error else written).append(message.value())

    def write() -> None:
        number = 0
        while not leave.is_set():
            writer.produce(TOPIC, str(number).encode(), on_delivery=told)
            writer.poll(0.001)
            number += 1
        writer.flush(60)

    thread = threading.Thread(target=write)
    thread.start()
    shown = [door.shown()]
    for _ in range(3):
        door.site.init()
        assert door.listener.follow(door.operator)
        shown.append(until_other(door, shown[-1]))
    leave.set()
    thread.join()
    assert len(set(shown)) == 4
    assert not refused
    assert read(door, len(written)) == written
    assert len(written) > 100
    assert not door.listener.follow(door.operator)


def test_a_certificate_that_cannot_be_used_is_said_and_the_one_before_stays(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    good, shown = door.site.server.read_bytes(), door.shown()
    door.site.server.write_text("half of a")
    assert not door.listener.follow(door.operator)
    assert "goes on with the certificate that it has" in caplog.text
    assert door.shown() == shown
    door.site.server.write_bytes(good)
    assert door.listener.follow(door.operator)


def until_other(door: Door, before: str) -> str:
    """Wait until Kafka shows another certificate than *before*, and return it."""
    return until(lambda: {door.shown()} - {before}, "Kafka goes on with the old certificate").pop()


def let_ann_write(door: Door) -> None:
    """Give the owner the right to write and read one topic, in groups of hers."""
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    rights = [
        AclBinding(kind, name, pattern, "User:ann", "*", right, AclPermissionType.ALLOW)
        for kind, name, pattern, right in (
            (ResourceType.TOPIC, TOPIC, literal, AclOperation.READ),
            (ResourceType.TOPIC, TOPIC, literal, AclOperation.WRITE),
            (ResourceType.GROUP, "ann.", prefixed, AclOperation.READ),
        )
    ]
    for done in door.operator.create_acls(rights).values():
        done.result(60)
    hers = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:ann", None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    until(lambda: len(door.operator.describe_acls(hers).result(60)) >= len(rights))


def read(door: Door, count: int) -> list[bytes]:
    """Return the first *count* records of the topic, as the owner reads them."""
    reader = consumer(door.listener.address, group="ann.all", **door.owner())
    reader.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        message = reader.poll(30)
        assert message is not None, f"only {len(found)} of {count} are there"
        assert message.error() is None
        found.append(message.value())
    reader.close()
    return found
