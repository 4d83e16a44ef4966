"""What Spark says of its batches: rows, and the duration of each phase."""

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery


def progress_after(query: StreamingQuery, batch: int) -> list[dict[str, Any]]:
    """Return Spark's progress of each batch after *batch*, in order; it remembers the last hundred.

    Asked for as JSON, from the newest on: ``query.recentProgress`` takes a hundred calls into Java for each.

    Raises:
        Py4JError: Java is gone.
    """
    return list(reversed([*_newest(query, batch)]))


def _newest(query: StreamingQuery, batch: int) -> Iterator[dict[str, Any]]:
    known = query._jsq.recentProgress()  # noqa: SLF001 - see above
    for at in range(len(known) - 1, -1, -1):
        progress: dict[str, Any] = json.loads(known[at].json())
        if progress["batchId"] <= batch:
            return
        if "addBatch" in progress.get("durationMs", {}):  # else it says that nothing happens
            yield progress
