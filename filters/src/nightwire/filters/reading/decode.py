"""Decoding messages into columns, though their schemas differ."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from nightwire.filters.language.vector import NoColumn, columns_of, paths_read
from nightwire.filters.reading.fetch import PATIENCE
from nightwire.schemas import AlertDecoder, RegistryAwayError, survey


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
        found = columns_of(decoder, values, fields)
        away = [error for error in found.faults.values() if isinstance(error, RegistryAwayError)]
        if not away:
            return found
        if time.monotonic() > deadline:
            raise away[0]
        time.sleep(0.5)


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


def decode_batch(
    values: Sequence[bytes], names: Iterable[str], of_survey: str, decoder: AlertDecoder
) -> tuple[Any, Sequence[int]]:
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
    described = survey(of_survey)
    paths = paths_read(names, values, described, decoder)
    found = decode_columns(decoder, values, paths, patience=0.0)
    return found.batch, found.rows
