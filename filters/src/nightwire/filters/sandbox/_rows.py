"""A batch as a filter's process sees it: mapped for reading, its rows as views of alerts."""

import json
import mmap
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.filters.language import FilterError
from nightwire.filters.sandbox._libc import MAP_FAILED, libc
from nightwire.filters.sandbox._whole import LazyAlert, Offered, WholeView
from nightwire.schemas import AlertDecoder, AlertTable, AlertView, Codec, UnknownSchemaError, survey, wire

Section = tuple[int, int]
"""Where a part of the batch begins, and how long it is. [byte]"""

View = Callable[[int], AlertView]


class Mapped:
    """A file mapped for reading, until nothing refers to it.  Only memory's own system calls are made.

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


class Rows:
    """The rows of one batch.

    Args:
        descriptor: Of the batch.
        size: Its size. [byte]
        survey_name: Its survey.
        count: How many rows.
        columns: Where the Arrow stream of its columns lies, if it has any.
        values: Where the ends of its messages lie (int64), the messages, and their schemas (JSON by id).
    """

    def __init__(
        self,
        descriptor: int,
        size: int,
        survey_name: str,
        count: int,
        columns: Section | None,
        values: Sequence[Section] | None,
    ) -> None:
        self.count = count
        self._survey = survey(survey_name)
        self._whole = Mapped(descriptor, size)
        self._columns, self._values = columns, values
        self._views: dict[bool, View] = {}

    def views(self, whole: bool) -> View:
        """Return what gives the view of a row, made of the columns, or of the *whole* message."""
        if whole not in self._views:
            self._views[whole] = self._of_messages() if whole else self._of_columns()
        return self._views[whole]

    def _of_columns(self) -> View:
        if self._table is None:
            raise FilterError("the batch brings no columns")
        return self._table.view

    @cached_property
    def _table(self) -> AlertTable | None:
        if self._columns is None:
            return None
        with pa.ipc.open_stream(self._whole.part(self._columns)) as stream:
            return AlertTable(stream.read_next_batch(), self._survey)

    def _of_messages(self) -> View:
        if self._values is None:
            raise FilterError("the batch brings no whole alerts")
        ends, bodies, schemas = (self._whole.part(section) for section in self._values)
        known = Known({int(key): schema for key, schema in json.loads(bytes(schemas)).items()})
        begins, messages = np.frombuffer(ends, np.int64).tolist(), memoryview(bodies)
        described, offered = self._survey, Offered(self._table)

        def view(row: int) -> AlertView:
            alert = known.alert(messages[begins[row] : begins[row + 1]])
            return WholeView(alert, described, offered, row)

        return view


CODECS: dict[int, Codec] = {}
"""By schema id, which never changes its meaning: to make one takes long."""
NAMES: dict[int, Mapping[str, tuple[str]]] = {}
"""Their top-level fields, each as a path of its own."""


class Known:
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
