"""Where `nightwire subscribe` puts tables: lines of JSON, CSV, an Arrow stream, a Parquet file.

Every table is out of this process before the next one is asked for; but a Parquet file can be read only when
it is closed.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import pyarrow as pa
from pyarrow import csv, parquet

from nightwire.consumers.formats.container import MixedSchemasError
from nightwire.consumers.formats.json import plain


class TableOutput(Protocol):
    """What takes tables."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def write(self, table: Any) -> None:
        """Put *table* out.

        Raises:
            MixedSchemasError: Its columns are of other types than those before.
        """


class _File:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        if self._file is not sys.stdout.buffer:
            self._file.close()


class JsonOutput(_File):
    """An object a line.

    Args:
        file: Where to.
        with_bytes: Bytes as base64, rather than left out.
    """

    def __init__(self, file: BinaryIO, *, with_bytes: bool) -> None:
        super().__init__(file)
        self._with_bytes = with_bytes

    def write(self, table: Any) -> None:
        """Put *table* out."""
        rows = (plain(row, with_bytes=self._with_bytes) for row in table.to_pylist())
        self._file.writelines(
            json.dumps(row, separators=(",", ":"), allow_nan=False).encode() + b"\n" for row in rows
        )
        self._file.flush()


class ColumnOutput(_File):
    """Tables one below the other, all of the first one's types.

    Args:
        file: Where to.
        begin: Returns what writes tables of a schema to a file.
        prepare: What becomes of a table first.
    """

    def __init__(
        self, file: BinaryIO, begin: Callable[..., Any], prepare: Callable[[Any], Any] = lambda table: table
    ) -> None:
        super().__init__(file)
        self._begin, self._prepare = begin, prepare
        self._writer: Any = None
        self._schema: Any = None

    def write(self, table: Any) -> None:
        """Put *table* out.

        Raises:
            MixedSchemasError: Its columns are of other types than those before.
        """
        table = self._prepare(table)
        if self._writer is None:
            self._schema, self._writer = table.schema, self._begin(self._file, table.schema)
        try:
            self._writer.write_table(table.cast(self._schema))
        except pa.ArrowException as error:
            raise MixedSchemasError(
                f"columns of another type than before ({error}): read all as one version, with --as-version"
            ) from error
        self._file.flush()

    def close(self) -> None:
        """End what was written, and close the file."""
        if self._writer is not None:
            self._writer.close()
        super().close()


def flat(table: Any) -> Any:
    """Return *table* as CSV can hold it: lists and records as JSON, bytes as base64."""
    for at, column in enumerate(table.columns):
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            texts = pa.array([_text(value) for value in column.to_pylist()], pa.string())
            table = table.set_column(at, table.field(at).name, texts)
    return table


def _text(value: Any) -> str | None:
    if value is None:
        return None
    found = plain(value, with_bytes=True)
    return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))


def open_table_output(form: str, path: Path | None, *, with_bytes: bool) -> TableOutput:
    """Return where tables go.

    Args:
        form: ``json``, ``csv``, ``arrow`` or ``parquet``.
        path: A file; None is standard output.
        with_bytes: JSON with bytes as base64.
    """
    file: BinaryIO = path.open("wb") if path else sys.stdout.buffer
    if form == "json":
        return JsonOutput(file, with_bytes=with_bytes)
    if form == "csv":
        return ColumnOutput(file, csv.CSVWriter, flat)
    return ColumnOutput(file, pa.ipc.new_stream if form == "arrow" else parquet.ParquetWriter)
