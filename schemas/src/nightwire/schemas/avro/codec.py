"""From alerts to Avro bodies, and back: as dictionaries or as columns.

`Codec` is the one place that turns bytes into values.  An engine (`engines`) does the work;
what it does was decided once, from the schemas (`plans`).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from nightwire.schemas.avro.engines import Batch, Decode, Encode, choose_engine
from nightwire.schemas.avro.plans.field_changes import Change
from nightwire.schemas.avro.plans.layout import layout
from nightwire.schemas.avro.plans.primitives import Memo
from nightwire.schemas.avro.plans.program import Program
from nightwire.schemas.avro.plans.project import project
from nightwire.schemas.avro.plans.resolve import checked_plan, own_plan, resolve
from nightwire.schemas.avro.plans.schema import Types, field_at, has_field, parse_message

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SELECTIONS = 64
"""Choices of fields that a codec keeps its decoders of."""
MAX_KNOWN_FIELDS = 4096
"""Fields that a codec remembers to have or not."""


class Codec:
    """Encode and decode the messages of one schema.  Safe to share between threads.

    Timestamps (Avro's logical types) are `datetime` in UTC.

    Args:
        schema: The writer's: a record schema, as parsed JSON.
        reader: The schema as which to read what was written; None = the writer's own.
        changes: What the survey changed in names and units between the two.
        engine: ``native`` or ``python``; None = NIGHTWIRE_CODEC, else the best there is.

    Raises:
        SchemaError: A schema is not an Avro schema of a record, no alert of *schema* can be read as
            *reader* (names the fields), or the engine is not there.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        reader: Mapping[str, Any] | None = None,
        changes: Sequence[Change] = (),
        engine: str | None = None,
    ) -> None:
        self.schema = dict(schema)
        self.reader = self.schema if reader is None else dict(reader)
        self.engine, self._engine = choose_engine(engine)
        self._parsed = parse_message(schema)
        self._parsed_reader = self._parsed if reader is None else parse_message(reader)
        self._name = str(self._parsed["name"])
        self._plan = self._resolved_plan(changes)
        self._selected: Memo[tuple[str, ...], Decode] = Memo(self._decode_selected, MAX_SELECTIONS)
        self._batchers: Memo[tuple[str, ...], Batch] = Memo(self._batcher, MAX_SELECTIONS)

    def encode(self, alert: Mapping[str, Any]) -> bytes:
        """Return the Avro body of *alert*, in the writer's schema.

        A field that is missing takes its default; a field that the schema does not have is an
        error.

        Raises:
            EncodeError: *alert* does not fit; the message names the field.
        """
        return self._encode(alert)

    def decode(self, body: bytes | memoryview, fields: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the alert whose Avro body is *body*, in the reader's shape.

        Args:
            body: Avro body.
            fields: Dotted paths (``diaSource.psfFlux``) of what is wanted; None = everything.  What
                lies behind the last of them is not looked at, and values of bytes and fixed are
                then views into *body*.

        Raises:
            DecodeError: It is cut off, malformed, or longer than its alert; names the offset [byte]
                and the field.  Or it holds a value that the reader's schema cannot.
            SchemaError: The reader's schema has no such field; names those there are.
        """
        if fields is None:
            return cast("dict[str, Any]", self._decode(body))
        return cast("dict[str, Any]", self._selected[tuple(fields)](body))

    def columns(
        self, messages: Sequence[bytes | memoryview], fields: Sequence[str], *, missing_ok: bool = False
    ) -> "pa.RecordBatch":
        """Return the chosen *fields* of all *messages*, a column per field, a row per message.

        Args:
            messages: Avro bodies.
            fields: Dotted paths (``diaSource.psfFlux``).  A path through an array of records
                (``prvDiaSources.psfFlux``) gives a column of lists.  Where a record on the way is
                null, so is the value.
            missing_ok: Whether a field that the schema does not have is a column of nulls, and no
                error.

        Raises:
            DecodeError: A message is malformed; the message says which one.
            SchemaError: The schema has no such field; names the fields there are.
        """
        there = [field for field in fields if self.has(field)] if missing_ok else fields
        batch = self._batchers[tuple(there)](messages)
        if len(there) == len(fields):
            return batch
        from nightwire.schemas.avro.arrow import with_null_columns  # pyarrow takes 0.1 s to import

        return with_null_columns(batch, fields, self._types, len(messages))

    def has(self, field: str) -> bool:
        """Return whether the reader's schema has a field at a dotted path."""
        return self._has[field]

    @cached_property
    def _has(self) -> Memo[str, bool]:
        return Memo(lambda field: has_field(self._types, field), MAX_KNOWN_FIELDS)

    @cached_property
    def _types(self) -> Types:
        return Types(self._parsed_reader)

    @cached_property
    def _encode(self) -> Encode:
        return self._engine.encoder(self._name, layout(self._parsed), self._parsed)

    @cached_property
    def _decode(self) -> Decode:
        return self._engine.decoder(self._name, self._plan)

    def _resolved_plan(self, changes: Sequence[Change]) -> Program:
        if self._parsed_reader is self._parsed:
            return own_plan(self._parsed)
        resolution = resolve(self._parsed, self._parsed_reader, changes)
        return checked_plan(resolution, self._name, str(self._parsed_reader["name"]))

    def _decode_selected(self, fields: tuple[str, ...]) -> Decode:
        types = self._types
        paths = [tuple(field.split(".")) for field in fields]
        for path, name in zip(paths, fields, strict=True):
            field_at(types, path, name)
        return self._engine.decoder(self._name, project(self._plan, paths), views=True)

    def _batcher(self, fields: tuple[str, ...]) -> Batch:
        from nightwire.schemas.avro.arrow import column_schema  # pyarrow takes 0.1 s to import

        schema = column_schema(self._parsed_reader, fields)
        paths = [tuple(field.split(".")) for field in fields]
        return self._engine.batcher(self._name, project(self._plan, paths), paths, schema)
