"""The format of alerts in Kafka: Confluent wire format, or a container with hop's headers."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from nightwire.schemas.wire import container_block, container_head, frame

TEST_HEADER = ("_test", b"true")
"""Header that marks an alert as a test; hop-client leaves such messages out by default."""


class MessageFormat(Protocol):
    """A format of alerts in Kafka."""

    def value(self, body: bytes) -> bytes:
        """Return the record's value for the Avro body of an alert."""

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers that the format itself wants, for the next record."""


class WireFormat:
    """Confluent wire format.

    Args:
        schema_id: Id of the alerts' schema.
    """

    def __init__(self, schema_id: int) -> None:
        self._schema_id = schema_id

    def value(self, body: bytes) -> bytes:
        """Return *body* behind the id of its schema."""
        return frame(self._schema_id, body)

    def headers(self) -> list[tuple[str, bytes]]:
        """Return none."""
        return []


class ContainerFormat:
    """An Avro object container for each alert, and the headers by which hop-client reads it.

    hop-client 0.13 (`hop.io.Stream._format`) reads ``_format``, and its own producer adds a random
    ``_id``.

    Args:
        schema: The alerts'.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        text = json.dumps(schema, separators=(",", ":")).encode()
        self._sync = hashlib.md5(text, usedforsecurity=False).digest()
        self._head = container_head(text, self._sync)

    def value(self, body: bytes) -> bytes:
        """Return a container of the one alert in *body*."""
        return self._head + container_block(body, self._sync)

    @staticmethod
    def headers() -> list[tuple[str, bytes]]:
        """Return the name of the format, and a random id of the record."""
        return [("_format", b"avro"), ("_id", uuid.uuid4().bytes)]


def message_format(name: str, schema: Mapping[str, Any], schema_id: int) -> MessageFormat:
    """Return the format *name*, ``wire`` or ``container``, for alerts of *schema*."""
    return ContainerFormat(schema) if name == "container" else WireFormat(schema_id)
