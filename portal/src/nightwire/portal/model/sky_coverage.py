"""Where alerts came from, as HEALPix: counts in cells, their coverage map (MOC)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nightwire.portal.model.recent import positions
from nightwire.portal.model.rows import Row

ORDER = 4
"""Of the cells that are drawn: 3.7° wide."""
MOC_ORDER = 8
"""Of the map's finest cells: 14 arcmin wide."""


def density(rows: Sequence[Row], order: int = ORDER) -> dict[int, int]:
    """Return the number of *rows* in each HEALPix cell of *order* that has any, nested scheme."""
    cells, counts = np.unique(_cells(rows, order), return_counts=True)
    return dict(zip(cells.tolist(), counts.tolist(), strict=True))


def moc(rows: Sequence[Row], order: int = MOC_ORDER) -> Any:
    """Return the `mocpy.MOC` of the cells in which *rows* lie."""
    from mocpy import MOC

    cells = np.unique(_cells(rows, order)).astype(np.uint64)
    return MOC.from_healpix_cells(cells, np.full(len(cells), order, np.uint8), max_depth=order)


def _cells(rows: Sequence[Row], order: int) -> NDArray[np.int64]:
    import healpy

    found = positions(rows)
    found = found[np.abs(found[:, 1]) <= 90] if len(found) else found
    if not len(found):
        return np.empty(0, np.int64)
    return np.asarray(healpy.ang2pix(1 << order, found[:, 0], found[:, 1], nest=True, lonlat=True))
