"""Where `nightwire subscribe` puts tables: lines of JSON, CSV, an Arrow stream, a Parquet file.

Every table has left this process before the next one is asked for; but a Parquet file can be read
only when it is closed.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
from pyarrow import csv, parquet

from nightwire.consumers.formats.container import MixedSchemasError
from nightwire.consumers.formats.json import json_value


class TableOutput(Protocol):
    """What takes tables."""

    def write(self, table: Any) -> None:
        """Put *table* out.

        Raises:
            MixedSchemasError: Its columns are of other types than those before.
        """

    def close(self) -> None:
        """Close what was opened; standard output stays open."""


class _FileOutput:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        if self._file is not sys.stdout.buffer:
            self._file.close()


class JsonOutput(_FileOutput):
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
        rows = (json_value(row, with_bytes=self._with_bytes) for row in table.to_pylist())
        self._file.writelines(
            json.dumps(row, separators=(",", ":"), allow_nan=False).encode() + b"\n" for row in rows
        )
        self._file.flush()


class ColumnOutput(_FileOutput):
    """Tables one below the other, all of the first one's types.

    Args:
        file: Where to.
        open_writer: Returns what writes tables of a schema to a file.
        convert: Applied to each table before it is written.
    """

    def __init__(
        self,
        file: BinaryIO,
        open_writer: Callable[..., Any],
        convert: Callable[[Any], Any] = lambda table: table,
    ) -> None:
        super().__init__(file)
        self._open_writer, self._convert = open_writer, convert
        self._writer: Any = None
        self._schema: Any = None

    def write(self, table: Any) -> None:
        """Put *table* out.

        Raises:
            MixedSchemasError: Its columns are of other types than those before.
        """
        table = self._convert(table)
        if self._writer is None:
            self._schema, self._writer = table.schema, self._open_writer(self._file, table.schema)
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


def flattened(table: Any) -> Any:
    """Return *table* as CSV can hold it: lists and records as JSON, bytes as base64."""
    for at, column in enumerate(table.columns):
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            texts = pa.array([_text(value) for value in column.to_pylist()], pa.string())
            table = table.set_column(at, table.field(at).name, texts)
    return table


def _text(value: Any) -> str | None:
    if value is None:
        return None
    found = json_value(value, with_bytes=True)
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
        return ColumnOutput(file, csv.CSVWriter, flattened)
    return ColumnOutput(file, pa.ipc.new_stream if form == "arrow" else parquet.ParquetWriter)
