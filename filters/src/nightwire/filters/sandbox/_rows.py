"""A batch as a filter's process sees it: mapped for reading, its rows as views of alerts."""

import json
import mmap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.filters.language import FilterError
from nightwire.filters.sandbox._libc import MAP_FAILED, libc
from nightwire.schemas import AlertDecoder, AlertTable, AlertView, Codec, UnknownSchemaError, survey

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
        if self._columns is None:
            raise FilterError("the batch brings no columns")
        with pa.ipc.open_stream(self._whole.part(self._columns)) as stream:
            return AlertTable(stream.read_next_batch(), self._survey).view

    def _of_messages(self) -> View:
        if self._values is None:
            raise FilterError("the batch brings no whole alerts")
        ends, bodies, known = (self._whole.part(section) for section in self._values)
        schemas = {int(key): schema for key, schema in json.loads(bytes(known)).items()}
        decoder, begins = AlertDecoder(Known(schemas)), np.frombuffer(ends, np.int64).tolist()
        messages, view = memoryview(bodies), self._survey.view

        def decoded(row: int) -> AlertView:
            return view(decoder.decode(bytes(messages[begins[row] : begins[row + 1]])).alert)

        return decoded


CODECS: dict[int, Codec] = {}
"""By schema id, which never changes its meaning: to make one takes long."""


class Known:
    """The schemas that came with a batch, as a decoder asks for them.

    Args:
        schemas: By id.
    """

    def __init__(self, schemas: Mapping[int, Mapping[str, Any]]) -> None:
        self._schemas = schemas

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema.

        Raises:
            UnknownSchemaError: It did not come with the batch.
        """
        if schema_id not in CODECS:
            if schema_id not in self._schemas:
                raise UnknownSchemaError(f"the schema {schema_id} did not come with the batch")
            CODECS[schema_id] = Codec(self._schemas[schema_id])
        return CODECS[schema_id]
