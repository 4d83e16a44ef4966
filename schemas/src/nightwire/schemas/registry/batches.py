"""Messages of several schemas as one batch of columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from nightwire.schemas.avro.codec import Codec
from nightwire.schemas.errors import DecodeError, SchemaError


@dataclass
class _Group:
    """Messages that one codec reads."""

    codec: Codec
    rows: list[int] = field(default_factory=list)
    bodies: list[bytes | memoryview] = field(default_factory=list)


class Batches:
    """Collects messages by codec, and gives their columns in the messages' order.

    A field that some of the schemas have is null in the rows of the others.

    Args:
        fields: Dotted paths.
        missing_ok: Whether a field that none of the schemas has is null, too, and no error.
    """

    def __init__(self, fields: Sequence[str], *, missing_ok: bool = False) -> None:
        self._fields = fields
        self._missing_ok = missing_ok
        self._groups: dict[int, _Group] = {}
        self._faults: dict[int, Exception] = {}
        self._empty: Any = pa.schema([pa.field(one, pa.null()) for one in fields]).empty_table()

    def expect(self, codec: Codec) -> None:
        """Take the types of columns without rows from *codec*.

        Raises:
            SchemaError: Its schema does not have the fields.
        """
        self._empty = pa.Table.from_batches([codec.columns([], self._fields, missing_ok=self._missing_ok)])

    def reject(self, at: int, error: Exception) -> None:
        """Note that message *at* cannot be read."""
        self._faults[at] = type(error)(str(error))  # without its frames, which hold the messages

    def add(self, at: int, codec: Codec, body: bytes | memoryview) -> None:
        """Take in message *at*."""
        group = self._groups.setdefault(id(codec), _Group(codec))
        group.rows.append(at)
        group.bodies.append(body)

    def combined(self) -> tuple[Any, Sequence[int], Mapping[int, Exception]]:
        """Return the batch, for each row its message's index, and the faults.

        Raises:
            SchemaError: No schema has the fields.
        """
        tables, rows, rejected = [], [], []
        self._check()
        for group in self._groups.values():
            try:
                batch, read = self._read(group)
            except DecodeError as error:
                self._faults |= {at: DecodeError(str(error)) for at in group.rows}
            except SchemaError as error:
                rejected.append(error)
                self._faults |= {at: DecodeError(str(error)) for at in group.rows}
            else:
                tables.append(pa.Table.from_batches([batch]))
                rows += read
        if rejected and not tables:
            raise rejected[0]
        return self._ordered(tables, rows)

    def _check(self) -> None:
        """Raise SchemaError for a field that none of the schemas has, unless that is allowed."""
        codecs = [group.codec for group in self._groups.values()]
        missing = [field for field in self._fields if not any(codec.has(field) for codec in codecs)]
        if codecs and missing and not self._missing_ok:
            codecs[0].columns([], missing)

    def _read(self, group: _Group) -> tuple[Any, list[int]]:
        try:
            return group.codec.columns(group.bodies, self._fields, missing_ok=True), group.rows
        except DecodeError:
            return self._one_by_one(group)

    def _one_by_one(self, group: _Group) -> tuple[Any, list[int]]:
        """Read the sound messages of a group that has others."""
        rows, bodies = [], []
        for at, body in zip(group.rows, group.bodies, strict=True):
            try:
                group.codec.columns([body], self._fields, missing_ok=True)
            except DecodeError as error:
                self._faults[at] = DecodeError(str(error).removeprefix("message 0: "))
            else:
                rows.append(at)
                bodies.append(body)
        return group.codec.columns(bodies, self._fields, missing_ok=True), rows

    def _ordered(
        self, tables: list[Any], rows: list[int]
    ) -> tuple[Any, Sequence[int], Mapping[int, Exception]]:
        faults = dict(sorted(self._faults.items()))
        if len(tables) == 1 and tables[0].num_rows:
            return _batch(tables[0]), rows, faults
        if not rows:
            return _batch(self._empty), [], faults
        if not self._fields:
            return (
                pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([]))),
                sorted(rows),
                faults,
            )
        order = sorted(range(len(rows)), key=rows.__getitem__)
        try:
            table = pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowException as error:
            raise SchemaError(f"the schemas of these messages do not agree: {error}") from error
        return _batch(table.take(order)), sorted(rows), faults


def _batch(table: Any) -> Any:
    (batch, *_) = table.combine_chunks().to_batches() or [
        pa.RecordBatch.from_arrays([pa.array([], one.type) for one in table.schema], schema=table.schema)
    ]
    return batch
