"""Which files of a table can hold what is asked for, as the table's log tells."""

from collections.abc import Collection
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nightwire.archive.storage import Table
from nightwire.core.kafka import TopicPartition


class FileList:
    """The files of a table, known by its version.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self._table, self.version = table, -1
        self._files: Any = pa.table({"path": pa.array([], pa.string())})

    def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset of *partition* that the table has not; None for all."""
        return self._table.known_position(partition)

    def refresh(self) -> bool:
        """Look whether there are others now; return whether there are.

        Raises:
            StorageError: The store does not answer.
        """
        found = self._table.refreshed()
        if found is None or found.version() == self.version:
            return False
        self._files = pa.table(found.get_add_actions(flatten=True))
        self.version = found.version()
        return True

    def all(self) -> list[str]:
        """Return the addresses of all files."""
        return self._addresses(self._files)

    def within(
        self, column: str, low: Any, high: Any, *, order: str = "", **folders: Collection[Any]
    ) -> list[str]:
        """Return the files that can have a value from *low* to *high* in *column*.

        Args:
            column: One of the table's statistics.
            low: The least; None for no bound.
            high: The greatest; None for no bound.
            order: A statistic by whose least value the files are ordered.
            folders: Values that the columns of folders may have.
        """
        files, may = self._files, [pa.array([True] * len(self._files), pa.bool_())]
        if not len(files):
            return []
        for name, values in folders.items():
            may.append(pc.is_in(files.column(f"partition.{name}"), pa.array(list(values))))
        for end, bound, beyond in (("max", low, pc.less), ("min", high, pc.greater)):
            if bound is not None and f"{end}.{column}" in files.schema.names:
                may.append(pc.invert(pc.fill_null(beyond(files.column(f"{end}.{column}"), bound), False)))
        found = files.select(["path", f"min.{order}"] if order else ["path"]).filter(reduce(pc.and_, may))
        return self._addresses(found.sort_by(f"min.{order}") if order else found)

    def _addresses(self, files: Any) -> list[str]:
        return [f"{self._table.uri}/{path}" for path in files.column("path").to_pylist()]
