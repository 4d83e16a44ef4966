"""Records that are published over HTTP: parsed, written to Kafka, acknowledged."""

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
from nightwire.directory.mediator.kafka_access import check_topic, kafka_refusal
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import MAX_MESSAGE

MAX_BATCH, MAX_RECORDS = 8 << 20, 10_000
"""Longest body of a batch [byte], and most records in it."""
FIELDS = frozenset({"key", "key_base64", "value_base64", "headers", "partition"})
"""The fields of a record in JSON."""
PROPERTIES: Mapping[str, Any] = {
    "batch.size": 512 << 10,
    "queue.buffering.max.kbytes": 16 << 10,
    "delivery.timeout.ms": 30_000,
}
"""Batches are smaller than a topic's limit, so a record that is too large is refused alone."""

Outcome = Mapping[str, Any]


@dataclass(frozen=True)
class Outgoing:
    """A record to be written; partition None: by the key.

    Raises:
        ValueError: A header's name has a NUL.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None

    def __post_init__(self) -> None:
        if any(b"\0" in name.encode() for name, _ in self.headers):
            raise ValueError("a NUL in a header's name")


class Publisher:
    """Writes records.

    Args:
        client: librdkafka's properties, with the user's credentials.
    """

    def __init__(self, client: Mapping[str, Any]) -> None:
        self.last_used = time.monotonic()
        self._topics: set[str] = set()
        self._producer = Producer({**PRODUCER, **client, **PROPERTIES})

    def publish(self, topic: str, records: Sequence[Outgoing]) -> list[Outcome]:
        """Return the partition and offset of each record once Kafka has it, or its error.  Blocks.

        Raises:
            RefusedError: The topic does not exist, or may not be seen.
        """
        self.last_used = time.monotonic()
        if topic not in self._topics:
            check_topic(self._producer, topic)
            self._topics.add(topic)
        outcomes: dict[int, Outcome] = {}
        for index, record in enumerate(records):
            self._produce(topic, record, partial(_on_delivery, outcomes, index, topic))
        while len(outcomes) < len(records):
            self._producer.poll(0.1)
        return [outcomes[index] for index in range(len(records))]

    def close(self) -> None:
        """Let running `publish` calls finish: the last reference closes the producer."""

    def _produce(self, topic: str, record: Outgoing, callback: Any) -> None:
        if len(record.value or b"") > MAX_MESSAGE:
            callback(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, f"longer than {MAX_MESSAGE} bytes"), None)
            return
        options: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        options |= {"headers": list(record.headers), "on_delivery": callback}
        try:
            produce(self._producer, topic, record.value, record.key, **options)
        except KafkaException as error:
            callback(error.args[0], None)


def parse_raw(body: bytes, headers: Mapping[str, str]) -> Outgoing:
    """Return the record with the value *body*, its key and headers from HTTP's *headers*.

    Raises:
        RefusedError: A header's name has a NUL.
    """
    key, pairs = headers.get("Nightwire-Key"), headers.get("Nightwire-Headers", "")
    split = [pair.partition("=")[::2] for pair in pairs.split("&") if pair]
    value = None if headers.get("Nightwire-Tombstone") == "true" else body
    known = None if key is None else unquote_to_bytes(key)
    try:
        named = [(unquote_to_bytes(name).decode(), unquote_to_bytes(data)) for name, data in split]
        return Outgoing(value, known, named)
    except ValueError as error:
        raise RefusedError(400, f"Nightwire-Headers: {error}") from error


def parse_batch(body: bytes) -> list[Outgoing]:
    """Return the records of ``{"records": [{"key": …, "value_base64": …, "headers": …}]}``.

    Raises:
        RefusedError: *body* is malformed; the message names the record.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "the body is no JSON") from error
    records = document.get("records") if isinstance(document, dict) else None
    if not isinstance(records, list) or not records:
        raise RefusedError(400, 'say {"records": [{"key": …, "value_base64": …}, …]}')
    if len(records) > MAX_RECORDS:
        raise RefusedError(413, f"{len(records)} records: at most {MAX_RECORDS} come at once")
    return [_outgoing(index, record) for index, record in enumerate(records)]


def _outgoing(index: int, fields: Any) -> Outgoing:
    try:
        unknown, partition = fields.keys() - FIELDS, fields.get("partition")
        wrong = partition is not None and (type(partition) is not int or not 0 <= partition < 1 << 31)
        key, value = fields.get("key"), fields["value_base64"]
        if "key_base64" in fields:
            key = _bytes(fields["key_base64"])
        elif key is not None:
            key = key.encode()
        headers = [(one["key"], _bytes(one["value"])) for one in fields.get("headers", ())]
        record = Outgoing(None if value is None else _bytes(value), key, headers, partition)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RefusedError(400, f"record {index}: {error!r} in {str(fields)[:99]}") from error
    if unknown or wrong:
        why = f"there are {', '.join(sorted(FIELDS))}" if unknown else "a partition is a whole number"
        raise RefusedError(400, f"record {index}: {', '.join(sorted(unknown)) or partition}: {why}")
    return record


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)


def _on_delivery(
    outcomes: dict[int, Outcome], index: int, topic: str, error: KafkaError | None, message: Message
) -> None:
    if error is None:
        outcomes[index] = {"partition": message.partition(), "offset": message.offset()}
    else:
        refused = kafka_refusal(error, topic)
        outcomes[index] = {"status": refused.status, "message": str(refused)}
