"""`find`: one question to the directory, answered as rows, JSON, Arrow or VOTable."""

import io
import json
import math
from typing import Any

from nightwire.directory.liveness import LogClock
from nightwire.directory.log import load
from nightwire.directory.view import Rows, View


class Answer:
    """The answer to a question.

    Args:
        rows: Columns and rows.
    """

    def __init__(self, rows: Rows) -> None:
        self.columns, self.rows = rows.columns, rows.rows

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def json(self) -> str:
        """Return the rows as JSON objects in an array."""
        return json.dumps(self.records(), default=bytes.hex)

    def arrow(self) -> Any:
        """Return the answer as a `pyarrow.Table`.

        Raises:
            pyarrow.ArrowInvalid: A column mixes kinds of values.
        """
        import pyarrow as pa

        values = [pa.array([row[n] for row in self.rows]) for n in range(len(self.columns))]
        return pa.Table.from_arrays(values, names=list(self.columns))

    def votable(self) -> bytes:
        """Return the answer as a VOTable; where a number is unknown, it is nan."""
        from astropy.table import Table

        columns = [_filled([row[n] for row in self.rows]) for n in range(len(self.columns))]
        out = io.BytesIO()
        Table(columns, names=list(self.columns)).write(out, format="votable")
        return out.getvalue()


def _filled(values: list[Any]) -> list[Any]:
    """Return *values* without nulls, which a VOTable spells as an empty text or nan."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if numbers and all(value is None or isinstance(value, int | float) for value in values):
        return [math.nan if value is None else value for value in values]
    return ["" if value is None else str(value) for value in values]


def find(sql: str, *, bootstrap: str | None = None) -> Answer:
    """Return the answer of the directory to *sql*: one SELECT over its views.

    Args:
        sql: Such as ``SELECT name, state FROM processes``.
        bootstrap: Kafka's address; else that of the environment or of the running stack.

    Raises:
        QueryError: The question is refused; the message says why.
        NoStackError: There is no Kafka to ask.
        KafkaException: Kafka cannot be reached, or refuses.
    """
    from nightwire.core.runtime import find_endpoints

    view = View(LogClock(math.inf))
    try:
        load(find_endpoints(bootstrap).kafka, view)
        return Answer(view.query(sql))
    finally:
        view.close()
