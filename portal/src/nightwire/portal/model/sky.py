"""The sky as HEALPix: counts of alerts, their coverage map (MOC); Mollweide's projection."""

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


def outlines(cells: Sequence[int], order: int = ORDER) -> list[list[tuple[float, float]]]:
    """Return the outline of each cell in Mollweide's projection, east to the left.

    The ellipse has half axes 2 and 1; a cell that the edge cuts is drawn at the side of its centre.
    """
    import healpy

    found = []
    for cell in cells:
        corners = healpy.vec2ang(healpy.boundaries(1 << order, cell, step=2, nest=True).T, lonlat=True)
        centre = healpy.pix2ang(1 << order, cell, nest=True, lonlat=True)[0]
        found.append(_outline(centre, corners[0], corners[1]))
    return found


def circle(ra: float, dec: float, radius: float) -> list[tuple[float, float]]:
    """Return the outline of the circle of *radius* around a position, as `outlines` does. [deg]"""
    turn = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    pole, size = np.deg2rad(90 - dec), np.deg2rad(min(radius, 179.0))
    cosine = np.cos(pole) * np.cos(size) + np.sin(pole) * np.sin(size) * np.cos(turn)
    east = np.arctan2(np.sin(size) * np.sin(turn) * np.sin(pole), np.cos(size) - np.cos(pole) * cosine)
    return _outline(ra, ra + np.rad2deg(east), 90 - np.rad2deg(np.arccos(np.clip(cosine, -1, 1))))


def _outline(
    centre: float, longitude: NDArray[np.float64], latitude: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """Return a closed line about *centre* in the projection, on the side of its centre. [deg in]"""
    middle = (centre + 180) % 360 - 180
    unwrapped = middle + (longitude - middle + 180) % 360 - 180
    return mollweide(np.clip(unwrapped, -180, 180), latitude)


def mollweide(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return x, from 2 in the east to -2, and y, from -1 in the south to 1. [deg in]"""
    phi = np.deg2rad(latitude)
    theta = phi.copy()
    for _ in range(30):  # Newton: 2 θ + sin 2θ = π sin φ
        slope = np.maximum(2 + 2 * np.cos(2 * theta), 1e-9)
        theta = np.clip(
            theta - (2 * theta + np.sin(2 * theta) - np.pi * np.sin(phi)) / slope, -np.pi / 2, np.pi / 2
        )
    x = -2 * np.deg2rad(longitude) / np.pi * np.cos(theta)
    return list(zip(x.tolist(), np.sin(theta).tolist(), strict=True))


def unproject(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude and latitude of points of the projection; NaN beside the ellipse. [deg]"""
    with np.errstate(invalid="ignore", divide="ignore"):
        theta = np.arcsin(np.where((x / 2) ** 2 + y**2 < 1, y, np.nan))
        longitude = -np.rad2deg(x * np.pi / 2 / np.cos(theta))
        return longitude, np.rad2deg(np.arcsin((2 * theta + np.sin(2 * theta)) / np.pi))


def _cells(rows: Sequence[Row], order: int) -> NDArray[np.int64]:
    import healpy

    found = positions(rows)
    found = found[np.abs(found[:, 1]) <= 90] if len(found) else found
    if not len(found):
        return np.empty(0, np.int64)
    return np.asarray(healpy.ang2pix(1 << order, found[:, 0], found[:, 1], nest=True, lonlat=True))
