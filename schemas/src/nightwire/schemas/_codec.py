"""From alerts to Avro bodies, and back: as dictionaries or as columns.

`Codec` is the one place that turns bytes into values.  Whatever else comes to do it faster keeps this
interface: a schema in, then ``encode``, ``decode`` and ``columns``.
"""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from nightwire.schemas._errors import DecodeError, EncodeError, SchemaError
from nightwire.schemas._fit import compile_check

if TYPE_CHECKING:
    import pyarrow as pa

MALFORMED = (
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    ArithmeticError,
    MemoryError,
)
"""What fastavro is seen to raise on bytes that are cut off or are not of its schema."""

UNFIT = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, ArithmeticError)
"""What fastavro is seen to raise on values that do not fit."""


def parse(schema: Mapping[str, Any] | Sequence[Any] | str) -> Any:
    """Return *schema* as fastavro wants it, its names resolved.

    Raises:
        SchemaError: It is not an Avro schema; the message says what is wrong with it.
    """
    try:
        return fastavro.parse_schema(cast("Any", schema), named_schemas={})
    except UnknownType as error:
        raise SchemaError(f"not an Avro schema: unknown type {error.name!r}") from error
    except (SchemaParseException, *UNFIT, RecursionError) as error:
        raise SchemaError(f"not an Avro schema: {_words(error)}") from error


def read_value(stream: io.BytesIO, parsed: Any) -> Any:
    """Read one value from *stream*, leaving it behind the value's last byte.

    Raises:
        DecodeError: The bytes break off or do not fit; names the offset at which it was noticed. [byte]
    """
    start = stream.tell()
    try:
        value = fastavro.schemaless_reader(stream, parsed, None)
    except MALFORMED as error:
        where = f"at byte {stream.tell() - start}"
        raise DecodeError(
            f"{schema_name(parsed)}: body is cut off or malformed {where}: {_words(error)}"
        ) from error
    return value


class Codec:
    """Encode and decode the messages of one schema.  The schema is parsed once.

    Timestamps (Avro's logical types) are `datetime` in UTC.  Safe to share between threads.

    Args:
        schema: A record schema, as parsed JSON.

    Raises:
        SchemaError: *schema* is not an Avro schema of a record.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)
        self._parsed = parse(schema)
        if not isinstance(self._parsed, dict) or "fields" not in schema:
            raise SchemaError(
                f"the schema of a message is that of a record with fields, not {self.schema.get('type')!r}"
            )
        self._misfit = compile_check(self._parsed)
        _set_binary_defaults(self._parsed)

    def encode(self, alert: Mapping[str, Any]) -> bytes:
        """Return the Avro body of *alert*.

        A field that is missing takes its default; a field that the schema does not have is an error.

        Raises:
            EncodeError: *alert* does not fit; the message names the field.
        """
        stream = io.BytesIO()
        if why := self._misfit(alert):
            raise EncodeError(f"{schema_name(self._parsed)}{why}")
        try:
            fastavro.schemaless_writer(stream, self._parsed, cast("Any", alert))
        except UNFIT as error:
            raise EncodeError(f"{schema_name(self._parsed)}: {_words(error)}") from error
        return stream.getvalue()

    def decode(self, body: bytes) -> dict[str, Any]:
        """Return the alert whose Avro body is *body*.

        Raises:
            DecodeError: It is cut off, malformed, or longer than its alert; names the offset. [byte]
        """
        stream = io.BytesIO(body)
        alert = read_value(stream, self._parsed)
        if (end := stream.tell()) != len(body):
            raise DecodeError(
                f"{schema_name(self._parsed)}: the record ends at byte {end} of {len(body)}; "
                "is it of another schema?"
            )
        return cast("dict[str, Any]", alert)

    def columns(self, messages: Sequence[bytes], fields: Sequence[str]) -> "pa.RecordBatch":
        """Return the chosen *fields* of all *messages*, a column per field, a row per message.

        Args:
            messages: Avro bodies.
            fields: Dotted paths (``diaSource.psfFlux``).  A path through an array of records
                (``prvDiaSources.psfFlux``) gives a column of lists.  Where a record on the way is null,
                so is the value.

        Raises:
            DecodeError: A message is malformed; the message says which one.
            SchemaError: The schema has no such field; names the fields there are.
        """
        from nightwire.schemas._columns import column_path, record_batch  # pyarrow takes 0.1 s to import

        paths = [column_path(self._parsed, field) for field in fields]
        return record_batch(paths, (self._decode_one(n, body) for n, body in enumerate(messages)))

    def _decode_one(self, number: int, body: bytes) -> dict[str, Any]:
        try:
            return self.decode(body)
        except DecodeError as error:
            raise DecodeError(f"message {number}: {error}") from error


def _set_binary_defaults(schema: Any) -> None:
    """Make bytes of the defaults of bytes and fixed fields, which are text in JSON."""
    if isinstance(schema, list):
        for branch in schema:
            _set_binary_defaults(branch)
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            kind = field["type"][0] if isinstance(field["type"], list) else field["type"]
            kind = kind["type"] if isinstance(kind, dict) else kind
            if kind in ("bytes", "fixed") and isinstance(field.get("default"), str):
                field["default"] = field["default"].encode("latin-1")
            _set_binary_defaults(field["type"])
        for part in ("items", "values"):
            _set_binary_defaults(schema.get(part))


def schema_name(parsed: Any) -> str:
    """Return a schema's full name, for messages."""
    return str(parsed.get("name", parsed.get("type"))) if isinstance(parsed, dict) else str(parsed)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__} {error}".strip()
