"""Decoding of messages in either format, wire or container: one by one, or as columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nightwire.schemas.avro.codec import Codec
from nightwire.schemas.avro.container import container_schema, single_body
from nightwire.schemas.avro.plans.primitives import Memo
from nightwire.schemas.errors import DecodeError, SchemaError, UnknownSchemaError
from nightwire.schemas.survey_model.description import description
from nightwire.schemas.wire import Bytes, is_container, unframe

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CONTAINER_CODECS = 64
"""Schemas in containers that a decoder keeps the codecs of."""


@dataclass(frozen=True)
class Decoded:
    """One message, decoded.

    Attributes:
        alert: The alert, by the field names of the decoder's reader, else by its own.
        schema_id: Its schema's id; None where the message brought its schema along.
        body: Its Avro body, as it lay in the message.
        schema: The schema it was written with.
    """

    alert: dict[str, Any]
    schema_id: int | None
    body: bytes
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Columns:
    """Chosen fields of many messages.

    Attributes:
        batch: One row per message that could be read, in their order.
        rows: For each row, the index of its message.
        faults: For each message that could not be read, by its index: DecodeError,
            UnknownSchemaError or RegistryAwayError.
    """

    batch: "pa.RecordBatch"
    rows: Sequence[int]
    faults: Mapping[int, Exception] = field(default_factory=dict)


class Codecs(Protocol):
    """What a decoder needs of a registry."""

    @property
    def codec(self) -> Callable[[int], Codec]:
        """Return the codec of a schema id."""


class AlertDecoder:
    """Decode what comes on `alerts.*`: messages in wire format, and containers of one alert.

    Each is read by the schema that it was written with; several in one batch are nothing special.

    Args:
        registry: Knows the schemas.
        reader: The schema as which to read them all; None = each as it was written.
        survey: Name of the survey whose changes of names and units apply.
    """

    def __init__(
        self, registry: Codecs, *, reader: Mapping[str, Any] | None = None, survey: str | None = None
    ) -> None:
        self._registry = registry
        self._reader = reader
        self._changes = description(survey).changes if survey else ()
        self._known: dict[Codec, Codec | str] = {}  # a registry's codec of an id may become another
        self._container_codecs: Memo[bytes, Codec | str] = Memo(self._of_container, MAX_CONTAINER_CODECS)

    def decode(self, value: bytes) -> Decoded:
        """Return the alert in *value*.

        Raises:
            DecodeError: The bytes are not in either format, are malformed, hold not exactly one
                alert, or what the reader's schema cannot.
            UnknownSchemaError: Nobody knows its schema; as RegistryAwayError, where asking again
                may help.
        """
        codec, schema_id, body = self._split(value, value)
        return Decoded(codec.decode(body), schema_id, body, codec.schema)

    def columns(self, values: Sequence[bytes], fields: Sequence[str], *, missing_ok: bool = False) -> Columns:
        """Return the chosen *fields* of all *values* that can be read, as `Codec.columns` does.

        A field that some of the schemas have, and others have not, is null in the others' rows.

        Args:
            values: Messages.
            fields: Dotted paths.
            missing_ok: Whether a field that none of the schemas has is a column of Arrow's type
                null, and no error.

        Raises:
            SchemaError: None of the schemas, or not the reader's, has such a field.
        """
        from nightwire.schemas.registry.batches import Batches  # pyarrow takes 0.1 s to import

        batches = Batches(fields, missing_ok=missing_ok)
        if self._reader is not None:
            batches.expect(Codec(self._reader))
        for at, value in enumerate(values):
            try:
                codec, _, body = self._split(value, memoryview(value))
            except (DecodeError, UnknownSchemaError) as error:
                batches.reject(at, error)
            else:
                batches.add(at, codec, body)
        return Columns(*batches.combined())

    def _split(self, value: bytes, whole: Bytes) -> tuple[Codec, int | None, Bytes | bytes]:
        """Return a message's codec, its schema's id if it has one, and its body in *whole*."""
        if is_container(value):
            text, contained = single_body(value)
            return _usable(self._container_codecs[text]), None, contained
        schema_id, body = unframe(whole)
        written = self._registry.codec(schema_id)
        if self._reader is None:
            return written, schema_id, body
        known = self._known.get(written)
        if known is None:
            known = self._known[written] = self._resolved(written)
        return _usable(known), schema_id, body

    def _of_container(self, text: bytes) -> Codec | str:
        try:
            return self._resolved(Codec(container_schema(text)))
        except SchemaError as error:
            return str(error)

    def _resolved(self, codec: Codec) -> Codec | str:
        """Return the codec that reads as the reader's schema what *codec* wrote, or why none
        can.
        """
        if self._reader is None or self._reader == codec.schema:
            return codec
        try:
            return Codec(codec.schema, reader=self._reader, changes=self._changes)
        except SchemaError as error:
            return str(error)


def _usable(known: Codec | str) -> Codec:
    """Return the codec.

    Raises:
        DecodeError: There is none.  Each is a new one: an error that is raised again keeps the
            frames of every message that met it.
    """
    if isinstance(known, str):
        raise DecodeError(known)
    return known
