"""Crossmatch of a position with the site's catalogues: nearest objects, and maps around it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nightwire.core.catalogues import CatalogueError, CatalogueStore, SkyMap

RADIUS = 5.0
"""Largest separation of a match. [arcsec]"""
OWNED = "/"
"""Part of the names of owners' catalogues, which are not shared."""


@dataclass(frozen=True)
class Match:
    """One catalogue's match of a position.

    Attributes:
        catalogue: Its name.
        separation: Of the nearest object; None where the catalogue is a map. [arcsec]
        count: Objects within `RADIUS`; of a map 1.
        columns: Of the nearest object.
        trouble: Why the catalogue cannot be read; empty where it was.
    """

    catalogue: str
    separation: float | None = None
    count: int = 1
    columns: dict[str, Any] | None = None
    trouble: str = ""


def crossmatch(store: CatalogueStore, ra: float, dec: float) -> list[Match]:
    """Return the shared catalogues' matches of a position, nearest first, maps last. [deg]"""
    found = [one for one in _matches(store, ra, dec) if one.count or one.trouble]
    return sorted(found, key=lambda one: (one.separation is None, one.separation, one.catalogue))


def _matches(store: CatalogueStore, ra: float, dec: float) -> Iterator[Match]:
    place = np.array([ra]), np.array([dec])
    for name in store.names():
        if OWNED in name:
            continue
        try:
            catalogue = store.open(name, store.describe(name).version)
        except CatalogueError as error:
            yield Match(name, trouble=str(error))
            continue
        if isinstance(catalogue, SkyMap):
            yield Match(name, count=int(catalogue.contains(*place)[0].as_py()))
            continue
        row = catalogue.match(*place, RADIUS, catalogue.description.offered)
        values = {column: values[0].as_py() for column, values in row.items()}
        separation = values.pop("separation")
        yield Match(name, separation, values.pop("count") or 0, values)
