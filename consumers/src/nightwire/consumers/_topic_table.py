"""The list of topics, for people and for programs."""

import json
from collections.abc import Sequence
from datetime import datetime

from rich.table import Table

from nightwire.consumers._listing import TopicRow


def as_text(rows: Sequence[TopicRow]) -> str:
    """Return *rows* as a JSON list; times are ISO 8601, UTC."""
    return json.dumps(
        [
            {
                "topic": row.name,
                "partitions": row.partitions,
                "records": row.records,
                "oldest": _iso(row.oldest),
                "newest": _iso(row.newest),
            }
            for row in rows
        ],
        indent=2,
    )


def as_table(rows: Sequence[TopicRow]) -> Table:
    """Return *rows* as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("topic")
    table.add_column("partitions", justify="right")
    table.add_column("records", justify="right")
    table.add_column("oldest (UTC)")
    table.add_column("newest (UTC)")
    for row in rows:
        count = f"{row.records:,}" if row.records else "·"
        table.add_row(row.name, str(row.partitions), count, _short(row.oldest), _short(row.newest))
    return table


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
