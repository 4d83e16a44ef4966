"""What an alert looks like in Kafka: Confluent wire format, or a container with hop's headers."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from nightwire.schemas.wire import container_block, container_head, frame

TEST = ("_test", b"true")
"""Header that marks what is no real alert; hop-client leaves such messages out unless told."""


class MessageFormat(Protocol):
    """A format."""

    def value(self, body: bytes) -> bytes:
        """Return the record's value for the Avro body of an alert."""

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers that the format itself wants, for one more record."""


class WireFormat:
    """Confluent wire format.

    Args:
        schema_id: Id of the alerts' schema.
    """

    def __init__(self, schema_id: int) -> None:
        self._schema_id = schema_id

    def value(self, body: bytes) -> bytes:
        """Return *body* behind its schema's id."""
        return frame(self._schema_id, body)

    def headers(self) -> list[tuple[str, bytes]]:
        """Return none."""
        return []


class ContainerFormat:
    """An Avro object container around each alert, and the headers by which hop-client knows it.

    hop-client 0.13 (`hop.io.Stream._format`) reads ``_format``, and its own producer adds a random ``_id``.

    Args:
        schema: The alerts'.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        text = json.dumps(schema, separators=(",", ":")).encode()
        self._sync = hashlib.md5(text, usedforsecurity=False).digest()
        self._head = container_head(text, self._sync)

    def value(self, body: bytes) -> bytes:
        """Return a container that holds the alert of *body* alone."""
        return self._head + container_block(body, self._sync)

    @staticmethod
    def headers() -> list[tuple[str, bytes]]:
        """Return the format's name, and an id of the record."""
        return [("_format", b"avro"), ("_id", uuid.uuid4().bytes)]


def message_format(name: str, schema: Mapping[str, Any], schema_id: int) -> MessageFormat:
    """Return the format *name*, ``wire`` or ``container``, for alerts of *schema*."""
    return ContainerFormat(schema) if name == "container" else WireFormat(schema_id)
