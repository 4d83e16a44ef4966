"""Small files are joined, and what is too old goes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nightwire.archive.storage import ALERTS, INDEX, PACKETS, SCHEMAS_FOLDER, StorageError, Store, Table

LEAST = 8
"""So many small files of a folder are joined, while the archive is at work."""
SPARED = timedelta(hours=24)
"""Files that were replaced stay for so long: somebody may be reading them."""


@dataclass(frozen=True)
class Retention:
    """How long things are kept; None for ever.

    Attributes:
        rows: Columns and index.
        whole: Whole alerts, with their stamps.
    """

    rows: timedelta | None = None
    whole: timedelta | None = None


class Upkeep:
    """The upkeep of an archive: what it did, and what it could not.

    Args:
        store: The archive's.
        retention: How long things are kept.

    Attributes:
        done: When all tables were last seen to. [s since 1970]
        failed: Why tables were not, the last time.
    """

    def __init__(self, store: Store, retention: Retention) -> None:
        self._store, self._retention = store, retention
        self.done, self.failed = 0.0, list[str]()

    @property
    def said(self) -> str:
        """What it did and could not, as whole lines."""
        moment = datetime.fromtimestamp(self.done, UTC).isoformat(timespec="seconds")
        done = f"all tables were last seen to at {moment}" if self.done else "not all tables were seen to yet"
        return "".join(f"upkeep: {one}\n" for one in (done, *self.failed))

    def run(self, least: int = LEAST, spared: timedelta = SPARED) -> int:
        """Compact all tables, and delete what is too old; what cannot be is in `failed`.

        Args:
            least: How many files of a folder are worth joining.
            spared: How long replaced files stay.

        Returns:
            How many files became fewer, before replaced ones are deleted.
        """
        fewer, failed = 0, list[str]()
        try:
            for table in self._tables():
                try:
                    fewer += self._of_table(table, least, spared)
                except Exception as error:  # noqa: BLE001  (whatever it is: others are seen to)
                    failed.append(f"{table.uri}: {type(error).__name__}: {error}")
        except StorageError as error:
            failed.append(str(error))
        self.failed, self.done = failed, self.done if failed else time.time()
        return fewer

    def _tables(self) -> Iterator[Table]:
        for survey in self._store.folders():
            for layout in (ALERTS, INDEX, PACKETS) if survey != SCHEMAS_FOLDER else ():
                yield Table(self._store, survey, layout)

    def _of_table(self, table: Table, least: int, spared: timedelta) -> int:
        kept = self._retention.whole if table.layout is PACKETS else self._retention.rows
        fewer = table.compact(least)
        table.expire((datetime.now(UTC) - kept).date().isoformat() if kept else "", spared)
        return fewer
