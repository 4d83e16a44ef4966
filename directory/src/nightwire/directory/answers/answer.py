"""The answer to a query, as rows, JSON, Arrow or VOTable; a reader of its topics."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nightwire.core.runtime import Endpoints
from nightwire.directory.answers.subscription import subscription
from nightwire.directory.answers.votable import votable
from nightwire.directory.model import Rows


class Answer:
    """The answer to a query.

    Args:
        rows: Columns and rows.
        origin: The site whose directory answered; None where nothing is subscribed.
    """

    def __init__(self, rows: Rows, origin: Endpoints | None = None) -> None:
        self.columns, self.rows, self._origin = rows.columns, rows.rows, origin

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of their columns."""
        return Rows(self.columns, self.rows).records()

    def subscribe(self, **options: Any) -> Any:
        """Return a `nightwire.consumers.AlertReader` of the topics in the column ``topic``.

        Args:
            options: The reader's, such as ``since`` or ``group``.  Kafka and registry are
                those of the columns ``bootstrap`` and ``registry``, else of the site that answered.

        Raises:
            SubscribeError: There are no topics, or they lie in several Kafkas.
            ValueError: Options that exclude each other.
        """
        return subscription(self.records(), self._origin, options)

    def json(self) -> bytes:
        """Return the rows as JSON objects in an array."""
        return json.dumps(self.records(), default=bytes.hex).encode()

    def arrow(self) -> Any:
        """Return the answer as a `pyarrow.Table`.

        Raises:
            pyarrow.ArrowInvalid: A column mixes kinds of values.
        """
        import pyarrow as pa

        values = [pa.array([row[n] for row in self.rows]) for n in range(len(self.columns))]
        return pa.Table.from_arrays(values, names=list(self.columns))

    def arrow_stream(self) -> bytes:
        """Return the answer as an IPC stream of Arrow."""
        import pyarrow as pa

        table, out = self.arrow(), pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        return bytes(out.getvalue())

    def votable(self) -> bytes:
        """Return the answer as a VOTable, with units where they are known."""
        return votable({"answer": Rows(self.columns, self.rows)})

    def encode(self, format: str) -> tuple[str, bytes]:
        """Return media type and bytes in *format*, one of `FORMATS`."""
        encoders = {"json": self.json, "arrow": self.arrow_stream, "votable": self.votable}
        return FORMATS[format], encoders[format]()


FORMATS: Mapping[str, str] = {
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
    "votable": "application/x-votable+xml",
}
"""The media type of each format of an answer."""


def rows_of(records: Sequence[Mapping[str, Any]]) -> Rows:
    """Return *records* as rows."""
    columns = list(records[0]) if records else []
    return Rows(columns, [tuple(record[name] for name in columns) for record in records])
