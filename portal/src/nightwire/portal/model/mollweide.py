"""Mollweide's projection of the sky, east to the left."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def outlines(cells: Sequence[int], order: int) -> list[list[tuple[float, float]]]:
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
