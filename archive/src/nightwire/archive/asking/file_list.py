"""Which files of a table can hold what is asked for, as the table's log tells."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nightwire.archive.asking.bounds import Bounds
from nightwire.archive.storage import Table
from nightwire.core.kafka import TopicPartition


class Files:
    """The files of one version of a table.

    Args:
        log: What the table's log has of each, an Arrow table.
    """

    def __init__(self, log: Any) -> None:
        self.log = log.combine_chunks()
        self.bounds = lru_cache(self._bounds)
        self.in_folder = lru_cache(self._in_folder)

    def _bounds(self, column: str) -> Bounds:
        ends = (self.log.column(f"{end}.{column}").combine_chunks() for end in ("min", "max"))
        return Bounds(*ends)

    def _in_folder(self, name: str, values: Collection[Any]) -> NDArray[np.bool_]:
        there = pc.is_in(self.log.column(f"partition.{name}"), pa.array(list(values)))
        return there.to_numpy()  # type: ignore[no-any-return]


class FileList:
    """The files of a table, known by its version.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self._table, self.version = table, -1
        self._files = Files(pa.table({"path": pa.array([], pa.string())}))

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
        self._files = Files(pa.table(found.get_add_actions(flatten=True)))
        self.version = found.version()
        return True

    def all(self) -> list[str]:
        """Return the addresses of all files."""
        return self._addresses(self._files.log)

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
        files, log = self._files, self._files.log
        may = [files.in_folder(name, tuple(values)) for name, values in folders.items()]
        if f"min.{column}" in log.schema.names:
            may.append(files.bounds(column).within(low, high))
        found = log.select(["path", f"min.{order}"] if order else ["path"])
        if may:
            found = found.take(np.logical_and.reduce(may).nonzero()[0])
        return self._addresses(found.sort_by(f"min.{order}") if order else found)

    def _addresses(self, files: Any) -> list[str]:
        return [f"{self._table.uri}/{path}" for path in files.column("path").to_pylist()]
