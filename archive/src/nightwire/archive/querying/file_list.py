"""The files of a table, and which of them can hold a value, by the statistics in its log."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nightwire.archive.querying.min_max import MinMax
from nightwire.archive.storage import Table


class Snapshot:
    """The files of one version of a table.

    Args:
        log: The log's entries of them, an Arrow table.
    """

    def __init__(self, log: Any) -> None:
        self.log = log.combine_chunks()
        self.min_max = lru_cache(self._min_max)
        self.in_partition = lru_cache(self._in_partition)

    def _min_max(self, column: str) -> MinMax:
        ends = (self.log.column(f"{end}.{column}").combine_chunks() for end in ("min", "max"))
        return MinMax(*ends)

    def _in_partition(self, name: str, values: Collection[Any]) -> NDArray[np.bool_]:
        there = pc.is_in(self.log.column(f"partition.{name}"), pa.array(list(values)))
        return there.to_numpy()  # type: ignore[no-any-return]


class FileList:
    """The files of a table, as of its last refresh.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self.table, self.version = table, -1
        self._snapshot = Snapshot(pa.table({"path": pa.array([], pa.string())}))

    def refresh(self) -> bool:
        """Read the table's newest version; return whether it is another.

        Raises:
            StorageError: The store does not answer.
        """
        found = self.table.refreshed()
        if found is None or found.version() == self.version:
            return False
        self._snapshot = Snapshot(pa.table(found.get_add_actions(flatten=True)))
        self.version = found.version()
        return True

    def all(self) -> list[str]:
        """Return the addresses of all files."""
        return self._addresses(self._snapshot.log)

    def matching(
        self, column: str, low: Any, high: Any, *, order: str = "", **partitions: Collection[Any]
    ) -> list[str]:
        """Return the files that can have a value from *low* to *high* in *column*.

        Args:
            column: A column with statistics.
            low: The minimum; None for no bound.
            high: The maximum; None for no bound.
            order: The column by whose minimum the files are ordered; empty for any order.
            partitions: Values that partition columns may have.
        """
        snapshot, log = self._snapshot, self._snapshot.log
        may = [snapshot.in_partition(name, tuple(values)) for name, values in partitions.items()]
        if f"min.{column}" in log.schema.names:
            may.append(snapshot.min_max(column).may_contain(low, high))
        found = log.select(["path", f"min.{order}"] if order else ["path"])
        if may:
            found = found.take(np.logical_and.reduce(may).nonzero()[0])
        return self._addresses(found.sort_by(f"min.{order}") if order else found)

    def _addresses(self, files: Any) -> list[str]:
        return [f"{self.table.uri}/{path}" for path in files.column("path").to_pylist()]
