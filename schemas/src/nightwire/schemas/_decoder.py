"""From a message's value to its alert, in whichever of the two formats it came."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nightwire.schemas._codec import Codec
from nightwire.schemas._errors import DecodeError
from nightwire.schemas.wire import is_container, read_container, unframe


@dataclass(frozen=True)
class Decoded:
    """One message, decoded.

    Attributes:
        alert: The alert, by its own field names.
        schema_id: Its schema's id; None where the message brought its schema along.
        body: Its Avro body, as it lay in the message.
        schema: The schema it was written with.
    """

    alert: dict[str, Any]
    schema_id: int | None
    body: bytes
    schema: Mapping[str, Any]


class Codecs(Protocol):
    """What a decoder needs of a registry."""

    @property
    def codec(self) -> Callable[[int], Codec]:
        """Return the codec of a schema id."""


class AlertDecoder:
    """Decode what comes on `alerts.*`: messages in wire format, and containers of one alert.

    Args:
        registry: Knows the schemas.
    """

    def __init__(self, registry: Codecs) -> None:
        self._registry = registry

    def decode(self, value: bytes) -> Decoded:
        """Return the alert in *value*.

        Raises:
            DecodeError: The bytes are not in either format, are malformed, or hold not exactly one alert.
            UnknownSchemaError: Nobody knows its schema; as RegistryAwayError, where asking again may help.
        """
        if is_container(value):
            return _only_record(value)
        schema_id, body = unframe(value)
        codec = self._registry.codec(schema_id)
        return Decoded(codec.decode(body), schema_id, body, codec.schema)


def _only_record(value: bytes) -> Decoded:
    records = list(read_container(value))
    if len(records) != 1:
        raise DecodeError(f"the container holds {len(records)} records; a message is one alert")
    (one,) = records
    return Decoded(one.record, None, one.body, one.schema)
