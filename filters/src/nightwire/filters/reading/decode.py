"""Decoding messages into columns, though their schemas differ."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from nightwire.filters.reading.fetch import PATIENCE
from nightwire.schemas import (
    AlertDecoder,
    AlertTable,
    Codec,
    DecodeError,
    RegistryAwayError,
    SchemaError,
    survey,
    wire,
)

CONTAINED = -1
"""Stands for the id of a schema that a message brought along."""


class NoColumn(Exception):  # noqa: N818 - nothing is wrong but that these fields must be read in another way
    """Some fields cannot be read as columns; *paths* are theirs."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        super().__init__(f"no columns of {', '.join(sorted(self.paths))}")


def decode_columns(
    decoder: AlertDecoder, values: Sequence[bytes], fields: Sequence[str], *, patience: float = PATIENCE
) -> Any:
    """Return the columns of *fields*; wait for a registry that is away: its schemas are no dead
    letters.

    Args:
        decoder: Reads the messages.
        values: Messages.
        fields: Dotted paths.
        patience: Longest wait for the registry. [s]

    Raises:
        NoColumn: The schemas do not agree on the types of some fields.
        RegistryAwayError: The registry was away too long.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            found = decoder.columns(values, fields, missing_ok=True)
        except SchemaError as error:
            raise NoColumn(path for path in fields if not _agree(decoder, values, path)) from error
        away = [error for error in found.faults.values() if isinstance(error, RegistryAwayError)]
        if not away:
            return found
        if time.monotonic() > deadline:
            raise away[0]
        time.sleep(0.5)


def _agree(decoder: AlertDecoder, values: Sequence[bytes], path: str) -> bool:
    """Return whether the schemas of some messages agree on a field."""
    try:
        decoder.columns(values, [path], missing_ok=True)
    except SchemaError:
        return False
    return True


def has_column(codec: Codec, path: str) -> bool:
    """Return whether a column can hold a field of the codec's schema."""
    try:
        codec.columns([], [path])
    except SchemaError:
        return False
    return True


def schema_id(value: bytes) -> int | None:
    """Return the id of a message's schema, or `CONTAINED`; None where it is no message at all."""
    try:
        return CONTAINED if wire.is_container(value) else wire.unframe(memoryview(value))[0]
    except DecodeError:
        return None


def foreign_messages(batch: Any, rows: Sequence[int], name: str) -> Mapping[int, str]:
    """Return why some messages are no alerts of the survey, by their index: they have no id."""
    described = survey(name)
    without_id = AlertTable(batch, described)["id"].null.nonzero()[0].tolist()
    text = f"no alert of survey {name}: no {' or '.join(described.description.ids.alert)} in it"
    return {rows[row]: f"{DecodeError.__name__}: {text}" for row in without_id}


def concatenate(batches: Sequence[Any], fields: Sequence[str]) -> Any:
    """Return batches as one.

    Raises:
        NoColumn: They do not agree on the types of some fields.
    """
    tables = [pa.Table.from_batches([one]) for one in batches if one.num_rows]
    if not tables:
        empty = pa.schema([pa.field(path, pa.null()) for path in fields])
        return pa.RecordBatch.from_pylist([], empty)
    try:
        table = _joined(tables)
    except pa.ArrowException as error:
        raise NoColumn(path for path in fields if not _joins(tables, path)) from error
    arrays = [column.combine_chunks() for column in table.columns]
    flat = [one.chunk(0) if isinstance(one, pa.ChunkedArray) else one for one in arrays]
    return pa.RecordBatch.from_arrays(flat, schema=table.schema)


def _joined(tables: Sequence[Any]) -> Any:
    return pa.concat_tables(tables, promote_options="permissive")


def _joins(tables: Sequence[Any], path: str) -> bool:
    try:
        _joined([one.select([path]) for one in tables])
    except pa.ArrowException:
        return False
    return True


def decode_table(
    values: Sequence[bytes], names: Iterable[str], of_survey: str, decoder: AlertDecoder
) -> tuple[AlertTable, Sequence[int]]:
    """Return the columns that programs read of a survey's alerts, and the indices of these.

    Args:
        values: Records; those that cannot be read are left out.
        names: What is read: ``Program.names``.
        of_survey: The survey.
        decoder: Reads them.

    Raises:
        NoColumn: The alerts' schemas do not agree on the types of some fields.
        RegistryAwayError: The registry does not answer.
    """
    described, wanted = survey(of_survey), list(names)
    paths = AlertTable.fields(wanted, described)
    for schema in schemas_of(values, decoder):
        paths += AlertTable.fields(wanted, described, schema)
    found = decode_columns(decoder, values, list(dict.fromkeys(paths)), patience=0.0)
    return AlertTable(found.batch, described), found.rows


def schemas_of(values: Iterable[bytes], decoder: AlertDecoder) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of *values*, each once; of containers that of the first one."""
    firsts: dict[int | None, bytes] = {}
    for value in values:
        firsts.setdefault(schema_id(value), value)
    for value in firsts.values():
        try:
            yield decoder.decode(value).schema
        except (DecodeError, SchemaError):
            continue
