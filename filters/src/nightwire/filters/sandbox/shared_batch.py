"""A batch in memory that all filters' processes map and nobody can change: a sealed memfd."""

import fcntl
import itertools
import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
import pyarrow as pa

from nightwire.filters.language import FilterError
from nightwire.filters.sandbox.alert_columns import AlertColumns
from nightwire.filters.sandbox.syscalls import MAP_FAILED, libc
from nightwire.filters.sandbox.types import BatchInput
from nightwire.schemas import (
    AlertDecoder,
    AlertTable,
    AlertView,
    Codec,
    Point,
    PreparedHistory,
    PreparedRows,
    Survey,
    UnknownSchemaError,
    survey,
    wire,
)
from nightwire.schemas.survey_model import ALERT_ATTRIBUTES, LIGHT_CURVE_ATTRIBUTES

Section = tuple[int, int]
"""Where a part of the batch begins, and how long it is. [byte]"""

View = Callable[[int], AlertView]


SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
ALIGNMENT = 64
"""Of each part, as Arrow likes it. [byte]"""


@dataclass(frozen=True)
class SharedBatch:
    """A sealed batch.

    Attributes:
        descriptor: Of the file.
        description: The arguments of `BatchRows`, its descriptor apart.
    """

    descriptor: int
    description: dict[str, Any]


@contextmanager
def sealed(batch: BatchInput) -> Iterator[SharedBatch]:
    """Yield *batch* as a sealed batch, closed at the end; processes' mappings of it stay.

    Raises:
        OSError: There is no memory for it.
    """
    descriptor = os.memfd_create("batch", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            columns = None if batch.columns is None else _write_columns(file, batch)
            values = None if batch.values is None else _write_values(file, batch.values, batch.schemas)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        description = {
            "size": os.fstat(descriptor).st_size,
            "survey_name": batch.survey,
            "count": batch.rows,
            "columns": columns,
            "values": values,
        }
        yield SharedBatch(descriptor, description)
    finally:
        os.close(descriptor)


def _write_columns(file: IO[bytes], batch: BatchInput) -> Section:
    with pa.ipc.new_stream(file, batch.columns.schema) as stream:
        stream.write_batch(batch.columns)
    return 0, file.tell()


def _write_values(
    file: IO[bytes], values: Sequence[bytes], schemas: Mapping[int, Mapping[str, Any]]
) -> tuple[Section, Section, Section]:
    ends = np.fromiter(itertools.accumulate(map(len, values), initial=0), np.int64)
    known = json.dumps({key: dict(schema) for key, schema in schemas.items()}).encode()
    return _write(file, [ends.tobytes()]), _write(file, values), _write(file, [known])


def _write(file: IO[bytes], parts: Iterable[bytes]) -> Section:
    file.write(bytes(-file.tell() % ALIGNMENT))
    begin = file.tell()
    file.writelines(parts)
    return begin, file.tell() - begin


class MappedFile:
    """A file mapped for reading until nothing refers to it, by `RULES`' system calls alone.

    Args:
        descriptor: Of the file; may be closed afterwards.
        size: Its size. [byte]

    Raises:
        MemoryError: There is no room for it.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        found = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE, descriptor, 0)
        if found == MAP_FAILED:
            raise MemoryError(f"a batch of {size} bytes cannot be mapped")
        self.address, self._size = found, size

    def __del__(self) -> None:
        if hasattr(self, "address"):
            libc.munmap(self.address, self._size)

    def part(self, section: Section) -> pa.Buffer:
        """Return a part of it, which keeps the whole."""
        return pa.foreign_buffer(self.address + section[0], section[1], base=self)


class BatchRows:
    """The rows of one batch.

    Args:
        descriptor: Of the batch.
        size: Its size. [byte]
        survey_name: Its survey.
        count: How many rows.
        columns: Where the Arrow stream of its columns lies, if it has any.
        values: Where the ends of its messages lie (int64), the messages, and their schemas (JSON by
            id).
        mentioned: The fields that the owner's filters mention.
    """

    def __init__(
        self,
        descriptor: int,
        size: int,
        survey_name: str,
        count: int,
        columns: Section | None,
        values: Sequence[Section] | None,
        mentioned: Sequence[str] = (),
    ) -> None:
        self.count = count
        self._survey = survey(survey_name)
        self._whole = MappedFile(descriptor, size)
        self._columns, self._values, self._mentioned = columns, values, mentioned

    def close(self) -> None:
        """Let everything go that was made of the batch."""
        made = vars(self)
        if values := made.pop("_shared_values", None):
            values.close()
        if prepared := made.pop("_prepared", None):
            prepared.close()
        elif table := made.pop("_table", None):
            table.close()
        made.clear()

    def shared(self, *, with_history: bool) -> Sequence[AlertView]:
        """Return the alerts, of columns, made once for all filters that change none of them.

        Args:
            with_history: Whether the filter mentions points.

        Raises:
            FilterError: The batch brings no columns.
        """
        return self._prepared.rows(with_history=with_history)

    def columns(self, begin: int, end: int) -> AlertColumns:
        """Return the columns of some alerts.

        Raises:
            FilterError: The batch brings no columns.
        """
        self._read_columns()
        return AlertColumns(AlertTable(self._batch.slice(begin, end - begin), self._survey))

    def view(self, *, whole: bool, shared: bool) -> View:
        """Return a function that gives a view of a row.

        Args:
            whole: Whether of the message, or of the columns.
            shared: Whether its points may be those that other filters have, too.

        Raises:
            FilterError: The batch does not bring them.
        """
        if not whole:
            return self._read_columns().view
        return self._view_of_message(self._shared_values if shared else TableValues(self._table))

    @cached_property
    def _prepared(self) -> PreparedRows:
        return PreparedRows(self._read_columns(), self._mentioned)

    def _read_columns(self) -> AlertTable:
        if self._table is None:
            raise FilterError("the batch brings no columns")
        return self._table

    @cached_property
    def _table(self) -> AlertTable | None:
        return None if self._batch is None else AlertTable(self._batch, self._survey)

    @cached_property
    def _batch(self) -> Any:
        if self._columns is None:
            return None
        with pa.ipc.open_stream(self._whole.part(self._columns)) as stream:
            return stream.read_next_batch()

    @cached_property
    def _shared_values(self) -> "TableValues":
        """The table's values, and points of the columns that are mentioned, if all are there."""
        names = [name for name in self._mentioned if name.startswith("history.")]
        paths = set(AlertTable.fields(names, self._survey))
        if self._table is None or not names or not paths.issubset(self._batch.schema.names):
            return TableValues(self._table)
        alert = self._read_message
        history = PreparedHistory(self._table, self._mentioned, lambda row: self._survey.view(alert(row)))
        return TableValues(self._table, history)

    def _view_of_message(self, table_values: "TableValues") -> View:
        alert, described = self._read_message, self._survey
        return lambda row: WholeAlertView(alert(row), described, table_values, row)

    @cached_property
    def _read_message(self) -> Callable[[int], Mapping[str, Any]]:
        if self._values is None:
            raise FilterError("the batch brings no whole alerts")
        ends, bodies, schemas = (self._whole.part(section) for section in self._values)
        known = BatchSchemas({int(key): schema for key, schema in json.loads(bytes(schemas)).items()})
        begins, messages = np.frombuffer(ends, np.int64).tolist(), memoryview(bodies)
        return lambda row: known.alert(messages[begins[row] : begins[row + 1]])


CODECS: dict[int, Codec] = {}
"""Codecs by schema id, which never changes its meaning; to make one takes long."""
NAMES: dict[int, Mapping[str, tuple[str]]] = {}
"""Top-level fields by schema id, each as a path of its own."""


class BatchSchemas:
    """The schemas that came with a batch, as a decoder asks for them.

    Args:
        schemas: By id.
    """

    def __init__(self, schemas: Mapping[int, Mapping[str, Any]]) -> None:
        self._schemas = schemas
        self._decoder = AlertDecoder(self)

    def alert(self, value: memoryview) -> Mapping[str, Any]:
        """Return the alert in a message, decoded as far as it is asked; one in a container at once.

        Raises:
            DecodeError: It is in neither format, or malformed.
            UnknownSchemaError: Its schema did not come with the batch.
        """
        if wire.is_container(bytes(value[:4])):
            return self._decoder.decode(bytes(value)).alert
        schema_id, body = wire.unframe(value)
        codec = self.codec(schema_id)
        return LazyAlert(body, codec, NAMES[schema_id])

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema.

        Raises:
            UnknownSchemaError: It did not come with the batch.
        """
        if schema_id not in CODECS:
            if schema_id not in self._schemas:
                raise UnknownSchemaError(f"the schema {schema_id} did not come with the batch")
            codec = CODECS[schema_id] = Codec(self._schemas[schema_id])
            NAMES[schema_id] = {one["name"]: (one["name"],) for one in codec.schema["fields"]}
        return CODECS[schema_id]


class LazyAlert(Mapping[str, Any]):
    """An alert whose top-level fields are decoded one by one, when they are asked for.

    Args:
        body: The alert's Avro body.
        codec: Of its schema.
        names: The schema's top-level fields, each as a path of its own.
    """

    def __init__(self, body: memoryview, codec: Codec, names: Mapping[str, tuple[str]]) -> None:
        self._body, self._codec, self._names = body, codec, names
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            value = self._codec.decode(self._body, self._names[name])[name]
            self._known[name] = bytes(value) if isinstance(value, memoryview) else value
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class TableValues:
    """The canonical values that a table has, asked for once by name.

    Args:
        table: The table; None: there is none.
        history: The points of its rows; None: a view makes its own.
    """

    def __init__(self, table: AlertTable | None, history: PreparedHistory | None = None) -> None:
        self._table, self._history = table, history
        self._items: dict[str, list[Any] | None] = {}

    def items(self, name: str) -> list[Any] | None:
        """Return a column's values, or None."""
        if name not in self._items:
            self._items[name] = self._found(name)
        return self._items[name]

    def close(self) -> None:
        """Let the points go."""
        if self._history is not None:
            self._history.close()

    def points(self, row: int) -> list[Any] | None:
        """Return a row's points, or None."""
        return None if self._history is None else self._history.points_of(row)

    def added(self, name: str, row: int) -> Any:
        """Return what a catalogue adds to a row.

        Raises:
            KeyError: The batch has it not.
        """
        return ({} if self._table is None else self._table.readers)[name](row)

    def curve(self, row: int) -> "dict[str, np.ndarray[Any, Any]] | None":
        """Return a row's light curve, or None."""
        if self._table is None or any(
            self.items(f"light_curve.{name}") is None for name in LIGHT_CURVE_ATTRIBUTES
        ):
            return None
        return self._table.view(row).light_curve()

    def _found(self, name: str) -> list[Any] | None:
        try:
            return None if self._table is None else self._table[name].items
        except KeyError:
            return None


def _from_table_or_message(name: str) -> Any:
    """Return the property *name*, of the table where it has it, else as `AlertView` has it."""
    made = getattr(AlertView, name)

    def get(self: "WholeAlertView") -> Any:
        items = self._table_values.items(name)
        return made.__get__(self, AlertView) if items is None else items[self._row]

    return property(get)


class WholeAlertView(AlertView):
    """An alert with all its fields; canonical values come from columns, which is quicker.

    Args:
        alert: The alert.
        survey: Its survey.
        table_values: The columns of its batch.
        row: Its row in them.
    """

    def __init__(self, alert: Mapping[str, Any], survey: Survey, table_values: TableValues, row: int) -> None:
        super().__init__(alert, survey)
        self._table_values, self._row = table_values, row

    def _own_history(self) -> list[Point]:
        found = self._table_values.points(self._row)
        return super()._own_history() if found is None else found

    def _own_added(self, name: str) -> Any:
        return self._table_values.added(name, self._row)

    def light_curve(self) -> "dict[str, np.ndarray[Any, Any]]":
        """As `AlertView.light_curve`."""
        found = self._table_values.curve(self._row)
        return super().light_curve() if found is None else found


for _name in ALERT_ATTRIBUTES:
    setattr(WholeAlertView, _name, _from_table_or_message(_name))
