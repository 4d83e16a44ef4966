"""Maintenance of the tables: compaction of small files, and retention."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nightwire.archive.storage import ALERTS, INDEX, PACKETS, SCHEMAS_FOLDER, StorageError, Store, Table

MIN_FILES = 8
"""Least number of files that `serve` compacts into one."""
VACUUM_AFTER = timedelta(hours=24)
"""Time for which replaced files stay: readers may have them open."""


@dataclass(frozen=True)
class Retention:
    """How long rows are kept; None for ever.

    Attributes:
        rows: Those of `alerts` and `index`.
        packets: Those of `packets`: whole alerts, with their stamps.
    """

    rows: timedelta | None = None
    packets: timedelta | None = None


class Maintenance:
    """The maintenance of an archive, and the result of its last run.

    Args:
        store: The archive's.
        retention: How long rows are kept.

    Attributes:
        completed_at: Time of the last run without an error; 0 for none. [s since 1970]
        errors: The errors of the last run, one a table.
    """

    def __init__(self, store: Store, retention: Retention) -> None:
        self._store, self._retention = store, retention
        self.completed_at, self.errors = 0.0, list[str]()

    @property
    def report(self) -> str:
        """The time of the last good run and the errors of the last one, as lines of text."""
        moment = datetime.fromtimestamp(self.completed_at, UTC).isoformat(timespec="seconds")
        done = f"last complete run at {moment}" if self.completed_at else "no complete run yet"
        return "".join(f"maintenance: {one}\n" for one in (done, *self.errors))

    def run(self, min_files: int = MIN_FILES, vacuum_after: timedelta = VACUUM_AFTER) -> int:
        """Compact all tables, and delete rows that are too old; problems are in `errors`.

        Args:
            min_files: Least number of files that are compacted into one.
            vacuum_after: The time for which replaced files stay.

        Returns:
            The decrease in the number of files.
        """
        fewer, errors = 0, list[str]()
        try:
            for table in self._tables():
                try:
                    fewer += self._maintain(table, min_files, vacuum_after)
                except Exception as error:  # noqa: BLE001  (the other tables go on)
                    errors.append(f"{table.uri}: {type(error).__name__}: {error}")
        except StorageError as error:
            errors.append(str(error))
        self.errors, self.completed_at = errors, self.completed_at if errors else time.time()
        return fewer

    def _tables(self) -> Iterator[Table]:
        for survey in self._store.folders():
            for layout in (ALERTS, INDEX, PACKETS) if survey != SCHEMAS_FOLDER else ():
                yield Table(self._store, survey, layout)

    def _maintain(self, table: Table, min_files: int, vacuum_after: timedelta) -> int:
        kept = self._retention.packets if table.layout is PACKETS else self._retention.rows
        fewer = table.compact(min_files)
        table.expire((datetime.now(UTC) - kept).date().isoformat() if kept else "", vacuum_after)
        return fewer
