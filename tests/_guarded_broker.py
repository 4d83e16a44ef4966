"""A real Kafka as `nightwire up --auth scram` runs it: it asks who is there, and denies the
rest.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaError, Producer

from nightwire.core.cli import main
from nightwire.core.kafka import environment
from nightwire.core.stack import Broker, free_port
from nightwire.core.stack.kafka.auth import listener_properties, operator_credentials

PATIENCE = 60.0
"""Longest wait for Kafka's verdict. [s]"""

Keys = Mapping[str, str]
QUIET: Mapping[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}


@dataclass(frozen=True)
class Guarded:
    """A running Kafka, and its operator's keys."""

    bootstrap: str
    keys: Keys

    def run(self, verb: str, *words: str, password: str | None = None) -> Result:
        """Run ``nightwire VERB WORDS`` as its operator."""
        given = {"NIGHTWIRE_NEW_PASSWORD": password} if password else {}
        with speaking_as(self.keys, **given):
            return CliRunner().invoke(main, [verb, *words, "--bootstrap", self.bootstrap])

    def client(self, keys: Keys, **more: Any) -> dict[str, Any]:
        """Return librdkafka's properties of a client with *keys*."""
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {"bootstrap.servers": self.bootstrap, **QUIET, **keys, **named}


@contextmanager
def guarded_broker(folder: Path) -> Iterator[Guarded]:
    """Run one with its data in *folder*."""
    password = secrets.token_urlsafe()
    one = Broker(folder, port=free_port(), controller=free_port(), properties=listener_properties(password))
    one.start()
    try:
        yield Guarded(one.bootstrap, operator_credentials(password))
    finally:
        one.stop()


def keys_of(name: str, password: str) -> dict[str, str]:
    """Return the keys of an owner or a broker."""
    return operator_credentials(password) | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": name}


@contextmanager
def speaking_as(keys: Keys, **more: str) -> Iterator[None]:
    """Let our own clients enter with *keys*, as the environment would tell them."""
    with pytest.MonkeyPatch.context() as here:
        for name, value in (environment(keys) | more).items():
            here.setenv(name, value)
        yield


def read(client: Mapping[str, Any], topic: str) -> KafkaError | bytes | None:
    """Return the first value in *topic*, or why it may not be read by the client's group."""
    with Consumer({"auto.offset.reset": "earliest", "enable.auto.commit": False, **client}) as consumer:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE)
        assert message is not None, f"no verdict about reading {topic}"
        return message.error() or message.value()


def write(client: Mapping[str, Any], topic: str, value: bytes = b"x") -> KafkaError | None:
    """Return why *value* may not be written to partition 0 of *topic*; None where it was."""
    said: list[KafkaError | None] = []
    producer = Producer({"acks": "all", "enable.idempotence": True, **client})
    producer.produce(
        topic, value, b"key", partition=0, on_delivery=lambda error, _message: said.append(error)
    )
    assert producer.flush(PATIENCE) == 0, f"no verdict about writing to {topic}"
    return said[0]
