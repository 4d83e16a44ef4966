"""Records that come by HTTP, written to Kafka and answered when it has acknowledged them."""

import json
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core.kafka import PRODUCER, Headers, produce
from nightwire.directory.mediator.kafka_access import check_topic, refusal
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import MAX_MESSAGE

MAX_BATCH, MAX_RECORDS = 8 << 20, 10_000
"""Longest body of a batch [byte], and most records in it."""
FIELDS = frozenset({"key", "key_base64", "value_base64", "headers", "partition"})
"""What may be said of a record."""
OWN: Mapping[str, Any] = {
    "batch.size": 512 << 10,
    "queue.buffering.max.kbytes": 16 << 10,
    "delivery.timeout.ms": 30_000,
}
"""A batch that is smaller than what topics take: a record that is too large is refused alone."""

Said = Mapping[str, Any]


@dataclass(frozen=True)
class Outgoing:
    """A record to be written; its partition is None where the key decides.

    Raises:
        ValueError: A header's name is none that Kafka can hold.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None

    def __post_init__(self) -> None:
        if any(b"\0" in name.encode() for name, _ in self.headers):
            raise ValueError("a NUL in a header's name")


class Publisher:
    """Writes records as *client*.

    Args:
        client: librdkafka's properties of its user.
    """

    def __init__(self, client: Mapping[str, Any]) -> None:
        self.used = time.monotonic()
        self._topics: set[str] = set()
        self._producer = Producer({**PRODUCER, **client, **OWN})

    def publish(self, topic: str, records: Sequence[Outgoing]) -> list[Said]:
        """Return where each of *records* lies, once Kafka has it, or why it has not.  Blocks.

        Raises:
            RefusedError: There is no such topic, or it is kept from us.
        """
        self.used = time.monotonic()
        if topic not in self._topics:
            check_topic(self._producer, topic)
            self._topics.add(topic)
        said: dict[int, Said] = {}
        for at, record in enumerate(records):
            self._produce(topic, record, partial(_heard, said, at, topic))
        while len(said) < len(records):
            self._producer.poll(0.1)
        return [said[at] for at in range(len(records))]

    def close(self) -> None:
        """Leave what is under way to who waits for it: librdkafka ends with its last user."""

    def _produce(self, topic: str, record: Outgoing, heard: Any) -> None:
        if len(record.value or b"") > MAX_MESSAGE:
            heard(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, f"longer than {MAX_MESSAGE} bytes"), None)
            return
        options: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        try:
            headers = list(record.headers)
            produce(
                self._producer, topic, record.value, record.key, on_delivery=heard, headers=headers, **options
            )
        except KafkaException as error:
            heard(error.args[0], None)


def raw(body: bytes, headers: Mapping[str, str]) -> Outgoing:
    """Return the record that *body* is, with the key and the headers that HTTP's *headers* say.

    Raises:
        RefusedError: A header's name is none that Kafka can hold.
    """
    key, pairs = headers.get("Nightwire-Key"), headers.get("Nightwire-Headers", "")
    split = [pair.partition("=")[::2] for pair in pairs.split("&") if pair]
    value = None if headers.get("Nightwire-Tombstone") == "true" else body
    known = None if key is None else unquote_to_bytes(key)
    try:
        named = [(unquote_to_bytes(name).decode(), unquote_to_bytes(said)) for name, said in split]
        return Outgoing(value, known, named)
    except ValueError as error:
        raise RefusedError(400, f"Nightwire-Headers: {error}") from error


def batch(body: bytes) -> list[Outgoing]:
    """Return the records of ``{"records": [{"key": …, "value_base64": …, "headers": …}]}``.

    Raises:
        RefusedError: *body* says nothing of the kind; the message names the record.
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "the body is no JSON") from error
    records = said.get("records") if isinstance(said, dict) else None
    if not isinstance(records, list) or not records:
        raise RefusedError(400, 'say {"records": [{"key": …, "value_base64": …}, …]}')
    if len(records) > MAX_RECORDS:
        raise RefusedError(413, f"{len(records)} records: at most {MAX_RECORDS} come at once")
    return [_outgoing(at, record) for at, record in enumerate(records)]


def _outgoing(at: int, said: Any) -> Outgoing:
    try:
        unknown, partition = said.keys() - FIELDS, said.get("partition")
        wrong = partition is not None and (type(partition) is not int or not 0 <= partition < 1 << 31)
        key, value = said.get("key"), said["value_base64"]
        key = _bytes(said["key_base64"]) if "key_base64" in said else None if key is None else key.encode()
        headers = [(one["key"], _bytes(one["value"])) for one in said.get("headers", ())]
        record = Outgoing(None if value is None else _bytes(value), key, headers, partition)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RefusedError(400, f"record {at}: {error!r} in {str(said)[:99]}") from error
    if unknown or wrong:
        why = f"there are {', '.join(sorted(FIELDS))}" if unknown else "a partition is a whole number"
        raise RefusedError(400, f"record {at}: {', '.join(sorted(unknown)) or partition}: {why}")
    return record


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)


def _heard(said: dict[int, Said], at: int, topic: str, error: KafkaError | None, message: Message) -> None:
    if error is None:
        said[at] = {"partition": message.partition(), "offset": message.offset()}
    else:
        refused = refusal(error, topic)
        said[at] = {"status": refused.status, "message": str(refused)}
