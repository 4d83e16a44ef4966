"""What catalogues add to alerts, as columns of their batch, before filters are asked.

Columns are named by the catalogue and its version, so filters that were accepted with different
versions are judged together.  Who runs a filter that is code gives it the names that it knows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nightwire.core.catalogues import CatalogueError, CatalogueStore, SkyMap
from nightwire.schemas import AlertTable, survey
from nightwire.schemas.survey_model import MATCH_MARK, MatchName

EVERY_COLUMN = ""
"""Where a filter names the match alone, all of the catalogue's columns are read."""


class MatchError(Exception):
    """A *match*, or what a map says, cannot be made here."""

    def __init__(self, match: str, error: Exception) -> None:
        self.match = match
        named = MatchName.parse(match)
        super().__init__(f"{named.call} of version {named.version}: {type(error).__name__}: {error}")


def with_matches(batch: Any, names: Iterable[str], of_survey: str, store: CatalogueStore) -> Any:
    """Return alerts with the columns that *names* say: those of them that begin with ``@``.

    Args:
        batch: The alerts.
        names: Of columns, of records with a question mark, or of whole records.
        of_survey: The alerts' survey.
        store: Has the catalogues.

    Raises:
        MatchError: One cannot be made.
    """
    wanted: dict[MatchName, set[str]] = {}
    for name in names:
        if name.startswith(MATCH_MARK):
            column = "separation" if name.endswith("?") else name.partition(".")[2]
            wanted.setdefault(MatchName.parse(name), {"separation"}).add(column)
    if not wanted:
        return batch
    table = AlertTable(batch, survey(of_survey))
    ra, dec = (_numbers(table, name) for name in ("ra", "dec"))
    for match, columns in wanted.items():
        try:
            found = _columns(match, columns, ra, dec, store)
        except Exception as error:  # whatever it is, it is a matter of those who ask for it
            raise MatchError(str(match), error) from error
        for column, values in found.items():
            batch = batch.append_column(column, values)
    return batch


def _columns(name: MatchName, columns: set[str], ra: Any, dec: Any, store: CatalogueStore) -> dict[str, Any]:
    opened = store.open(name.catalogue, name.version)
    if isinstance(opened, SkyMap):
        return {str(name): opened.contains(ra, dec)}
    chosen = opened.description.offered if EVERY_COLUMN in columns else sorted(columns)
    found = opened.match(ra, dec, name.radius_mas / 1000, chosen)
    return {f"{name}.{column}": values for column, values in found.items()}


def _numbers(table: AlertTable, name: str) -> Any:
    """Return a column as float64, NaN where there is nothing."""
    try:
        column = table[name]
    except KeyError:  # no schema of these alerts has positions
        return np.full(len(table), np.nan)
    return np.where(column.null, np.nan, column.values).astype(np.float64)


def versions_of(matches: Iterable[str]) -> dict[str, str]:
    """Return the names of matches in some versions, by the names that filters know."""
    return {str(MatchName.parse(one).plain): one for one in matches}


def as_asked(batch: Any, matches: Sequence[str]) -> Any:
    """Return alerts with *matches* under the names that filters know, and without any others."""
    plain = {one: known for known, one in versions_of(matches).items()}
    kept, names = [], []
    for at, name in enumerate(batch.schema.names):
        record, dot, column = name.partition(".")
        if not name.startswith(MATCH_MARK) or record in plain:
            kept.append(at)
            names.append(f"{plain.get(record, record)}{dot}{column}")
    return batch.select(kept).rename_columns(names) if names != batch.schema.names else batch


def missing(matches: Iterable[str], store: CatalogueStore) -> str | None:
    """Return why *matches* cannot be made here; None where they can."""
    try:
        for one in matches:
            name = MatchName.parse(one)
            store.open(name.catalogue, name.version)
    except (CatalogueError, OSError) as error:
        return str(error)
    return None


def asks_own(matches: Mapping[str, str]) -> bool:
    """Return whether some of *matches* are with an owner's own catalogues."""
    return any("/" in one for one in matches)
