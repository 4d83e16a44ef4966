"""Small files are joined, and what is too old goes."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nightwire.archive.storage import ALERTS, FOLDER, INDEX, PACKETS, Place, StorageError, Table

log = logging.getLogger("nightwire.archive")

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


def keep_up(
    place: Place,
    retention: Retention,
    least: int = LEAST,
    spared: timedelta = SPARED,
) -> int:
    """Compact all tables of the archive, and delete what is older than *retention*.

    Args:
        place: Of the archive.
        retention: How long things are kept.
        least: How many files of a folder are worth joining.
        spared: How long replaced files stay.

    Returns:
        How many files became fewer, before replaced ones are deleted.
    """
    fewer = 0
    for survey in place.folders():
        for kind in (ALERTS, INDEX, PACKETS) if survey != FOLDER else ():
            kept = retention.whole if kind is PACKETS else retention.rows
            try:
                fewer += _keep_up(Table(place, survey, kind), kept, least, spared)
            except StorageError as error:  # tried again at the next time
                log.warning("%s", error)
    return fewer


def _keep_up(table: Table, kept: timedelta | None, least: int, spared: timedelta) -> int:
    fewer = table.compact(least)
    table.forget((datetime.now(UTC) - kept).date().isoformat() if kept else "", spared)
    return fewer
