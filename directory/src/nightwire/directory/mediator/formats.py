"""The formats of records over HTTP.  Pure, but for the schemas that a decoder fetches.

A key or Kafka header that HTTP's headers cannot hold is percent-encoded there (RFC 3986), and
base64 in JSON.
"""

import json
import math
import secrets
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

from confluent_kafka import Message

from nightwire.schemas import AlertDecoder, RegistryAwayError, SchemaError

LENGTH = struct.Struct(">i")
"""Before each record of the format ``avro``: its length, -1 for null (as NULLABLE_BYTES)."""
MAX_HEADER = 8 << 10
"""Longest HTTP header of a record's key, or of its headers. [byte]"""

EncodedBatch = tuple[str, Mapping[str, str], bytes]
"""Media type, headers and body."""
ValueFields = Callable[[Message], Mapping[str, Any]]
"""Returns the JSON fields of a record's value."""


def raw(messages: Sequence[Message]) -> EncodedBatch:
    """Return a record's value as it is; its key and headers are HTTP's headers, if not too long."""
    (message,) = messages
    headers = dict(_record_headers(message))
    if long := [name for name, text in headers.items() if len(text) > MAX_HEADER]:
        headers = {name: text for name, text in headers.items() if name not in long}
        headers["Nightwire-Left-Out"] = ", ".join(long)
    return "application/octet-stream", headers, message.value() or b""


def multipart(messages: Sequence[Message]) -> EncodedBatch:
    """Return records as they are, as parts of ``multipart/mixed`` (RFC 2046)."""
    boundary = secrets.token_hex(16)
    parts: list[bytes] = []
    for message in messages:
        value = message.value() or b""
        lines = [f"--{boundary}", "Content-Type: application/octet-stream", f"Content-Length: {len(value)}"]
        lines += [f"{name}: {text}" for name, text in _record_headers(message)]
        parts += ["\r\n".join([*lines, "", ""]).encode(), value, b"\r\n"]
    return f"multipart/mixed; boundary={boundary}", {}, b"".join([*parts, f"--{boundary}--\r\n".encode()])


def frames(messages: Sequence[Message]) -> EncodedBatch:
    """Return the records' values alone, each behind its `LENGTH`."""
    parts: list[bytes] = []
    for message in messages:
        value = message.value()
        parts += [LENGTH.pack(-1)] if value is None else [LENGTH.pack(len(value)), value]
    return "application/octet-stream", {}, b"".join(parts)


def json_array(messages: Sequence[Message], value: ValueFields, *, stamps: bool) -> EncodedBatch:
    """Return records as a JSON array of objects; *stamps*: with fields of bytes."""
    objects = (_json(message, value, stamps=stamps) for message in messages)
    return "application/json", {}, b"[%s]" % b",\n".join(objects)


def events(messages: Sequence[Message], value: ValueFields, cursors: Sequence[str], *, stamps: bool) -> bytes:
    """Return records as server-sent events, each with its cursor as its id."""
    return b"".join(
        b"id: %s\ndata: %s\n\n" % (cursor.encode(), _json(message, value, stamps=stamps))
        for cursor, message in zip(cursors, messages, strict=True)
    )


def base64_value(message: Message) -> Mapping[str, Any]:
    """Return a record's value undecoded."""
    value = message.value()
    return {"value_base64": None if value is None else b64encode(value).decode()}


def decoded_value(decoder: AlertDecoder, message: Message) -> Mapping[str, Any]:
    """Return a record's value decoded; a broken one undecoded, with the reason.

    Raises:
        RegistryAwayError: The schema registry does not answer.
    """
    if (value := message.value()) is None:
        return {"value": None}
    try:
        return {"value": decoder.decode(value).alert}
    except RegistryAwayError:
        raise
    except SchemaError as error:
        return {"error": str(error), **base64_value(message)}


def as_json(record: Mapping[str, Any], *, stamps: bool) -> str:
    """Return *record* as JSON: null for what is not finite, times by ISO 8601.

    *stamps*: with bytes, as base64.  The encoder alone is several times faster than
    `to_json`, which is needed for what the encoder refuses.
    """
    alert = record.get("value")
    if isinstance(alert, dict) and not stamps:
        record = {**record, "value": {name: one for name, one in alert.items() if not _bytes(one)}}
    try:
        return ENCODERS[stamps].encode(record)
    except ValueError:
        return ENCODERS[True].encode(to_json(record, stamps=stamps))


def to_json(value: Any, *, stamps: bool) -> Any:
    """Return *value* with null for what is not finite; bytes are left out unless *stamps*."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            fields = value.items()
            return {
                str(name): to_json(one, stamps=stamps) for name, one in fields if stamps or not _bytes(one)
            }
        case list() | tuple():
            return [to_json(one, stamps=stamps) for one in value if stamps or not _bytes(one)]
    return value


def _encode(value: Any, *, stamps: bool) -> str | float:
    """Return a value without JSON type as text or number.

    Raises:
        ValueError: It is bytes, without *stamps*.
    """
    match value:
        case bytes():
            if not stamps:
                raise ValueError("bytes are left out")
            return b64encode(value).decode()
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
    return str(value)


ENCODERS = {
    stamps: json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=partial(_encode, stamps=stamps))
    for stamps in (False, True)
}


def _bytes(value: Any) -> bool:
    return isinstance(value, bytes)


def _json(message: Message, value: ValueFields, *, stamps: bool) -> bytes:
    where = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
    headers = [{"key": name, "value": b64encode(data).decode()} for name, data in _headers(message)]
    record = {**where, "timestamp": message.timestamp()[1], **_key(message), "headers": headers}
    return as_json({**record, **value(message)}, stamps=stamps).encode()


def _key(message: Message) -> Mapping[str, str | None]:
    key: Any = message.key()
    try:
        return {"key": None if key is None else key.decode()}
    except UnicodeDecodeError:
        return {"key_base64": b64encode(key).decode()}


def _headers(message: Message) -> list[tuple[str, bytes]]:
    pairs: Any = message.headers() or ()
    return [(name, data.encode() if isinstance(data, str) else data or b"") for name, data in pairs]


def _record_headers(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the HTTP headers of a record: everything but its value."""
    yield "Nightwire-Topic", str(message.topic())
    yield "Nightwire-Partition", str(message.partition())
    yield "Nightwire-Offset", str(message.offset())
    yield "Nightwire-Timestamp", str(message.timestamp()[1])
    if message.value() is None:
        yield "Nightwire-Tombstone", "true"
    key: Any = message.key()
    if key is not None:
        yield "Nightwire-Key", quote(key, safe="")
    if pairs := _headers(message):
        yield "Nightwire-Headers", "&".join(f"{quote(name, safe='')}={quote(data)}" for name, data in pairs)
