"""The sky in HEALPix cells."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nightwire.portal.model import density, moc
from nightwire.portal.model.mollweide import mollweide, outlines
from portal.tests.model.test_recent import row

ROWS = [row(1, ra=10.0, dec=-20.0), row(2, ra=10.1, dec=-20.0), row(3, ra=359.9, dec=89.0), row(4, dec=-95.0)]


def test_every_alert_with_a_place_on_the_sky_is_counted() -> None:
    assert sum(density(ROWS).values()) == 3
    assert density([]) == {}


def test_the_map_covers_what_came_in_and_little_more() -> None:
    found = moc(ROWS)
    lon, lat = np.array([10.0, 359.9, 50.0]), np.array([-20.0, 89.0, 0.0])
    assert found.contains_lonlat(lon * _deg(), lat * _deg()).tolist() == [True, True, False]
    assert moc([]).empty()


def _deg():  # type: ignore[no-untyped-def]
    from astropy import units

    return units.deg


def test_cells_lie_within_the_ellipse() -> None:
    points = np.array([point for outline in outlines(range(3072), 4) for point in outline])
    assert ((points[:, 0] / 2) ** 2 + points[:, 1] ** 2).max() < 1 + 1e-6


@given(st.floats(-180, 180), st.floats(-90, 90))
def test_the_projection_keeps_north_up_and_east_to_the_left(longitude: float, latitude: float) -> None:
    ((x, y),) = mollweide(np.array([longitude]), np.array([latitude]))
    assert np.sign(round(y, 9)) in (0, np.sign(latitude))
    assert np.sign(round(x, 9)) in (0, -np.sign(longitude))
