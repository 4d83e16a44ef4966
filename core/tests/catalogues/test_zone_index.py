"""Which objects lie near positions, beside astropy's answer, over the whole sky."""

from typing import Any

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.catalogues import ZoneIndex, separations
from nightwire.core.catalogues.zone_index import zone_keys

Array = np.ndarray[Any, Any]


def indexed(ra: Array, dec: Array, height: float) -> tuple[ZoneIndex, Array]:
    """Return an index, and the number of the object in each of its rows."""
    keys = zone_keys(ra, dec, height)
    order = np.argsort(keys, kind="stable")
    return ZoneIndex(keys[order], dec[order], height), order


def sky(count: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Return positions all over the sky, some at its poles and at the origin of ra. [deg]"""
    ra, dec = random.uniform(0, 360, count), np.degrees(np.arcsin(random.uniform(-1, 1, count)))
    tenth = count // 10
    dec[:tenth] = 90 - random.uniform(0, 0.5, tenth)
    dec[tenth : 2 * tenth] = -90 + random.uniform(0, 0.5, tenth)
    ra[2 * tenth : 3 * tenth] = random.uniform(-0.2, 0.2, tenth) % 360
    dec[:2], ra[2:4] = (90, -90), (0, 360 - 1e-12)
    return ra, dec


@pytest.mark.slow
@pytest.mark.parametrize("height", [0.05, 0.7, 1.0])
@pytest.mark.parametrize("radius", [2.0, 60.0, 3600.0])
def test_the_nearest_are_those_of_astropy(height: float, radius: float) -> None:
    random = np.random.default_rng(1)
    ra, dec = sky(20_000, random)
    at_ra, at_dec = sky(2_000, random)
    at_ra[1000:1200], at_dec[1000:1200] = ra[:200] + 1e-4, dec[:200]  # some are near for sure
    index, number = indexed(ra, dec, height)
    found = index.nearest(at_ra, at_dec, radius)
    objects, places = SkyCoord(ra, dec, unit="deg"), SkyCoord(at_ra, at_dec, unit="deg")
    nearest, apart, _ = places.match_to_catalog_sky(objects)
    near = apart.arcsec <= radius
    assert near.sum() > 100
    assert (number[found.row[near]] == nearest[near]).all()
    assert (found.row[~near] == -1).all()
    assert np.isnan(found.separation[~near]).all()
    assert np.abs(found.separation[near] - apart.arcsec[near]).max() < 1e-5
    pairs = objects.search_around_sky(places, radius * u.arcsec)
    assert (found.count == np.bincount(pairs[0], minlength=len(at_ra))).all()


places = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1e-9, 0.3, 179.9, 359.7, 359.9999999]) | st.floats(0, 359.9999),
        st.sampled_from([90.0, 89.9, -90.0, -89.6, 0.0]) | st.floats(-90, 90),
    ),
    min_size=1,
    max_size=12,
)


@given(places, places, st.sampled_from([1.0, 900.0, 3600.0]), st.sampled_from([0.05, 1.0]))
def test_nothing_near_is_left_out(
    objects: list[tuple[float, float]], asked: list[tuple[float, float]], radius: float, height: float
) -> None:
    ra, dec = (np.array(part) for part in zip(*objects, strict=True))
    at_ra, at_dec = (np.array(part) for part in zip(*asked, strict=True))
    found = indexed(ra, dec, height)[0].nearest(at_ra, at_dec, radius)
    apart = separations(at_ra[:, None], at_dec[:, None], ra[None], dec[None])
    sure = np.abs(apart - radius).min(axis=1) > 1e-5  # on the edge, digits decide
    assert (found.count == (apart <= radius).sum(axis=1))[sure].all()
    near = sure & (found.row >= 0)
    assert np.abs(found.separation - apart.min(axis=1))[near].max(initial=0) < 1e-5


def test_what_has_no_position_is_near_nothing() -> None:
    index, _ = indexed(np.array([10.0]), np.array([20.0]), 1.0)
    found = index.nearest(np.array([np.nan, 10.0, 10.0, 370.0]), np.array([20.0, np.nan, 200.0, 20.0]), 5)
    assert found.count.tolist() == [0, 0, 0, 1]
    assert found.row.tolist() == [-1, -1, -1, 0]


def test_nothing_is_near_where_there_is_nothing() -> None:
    found = ZoneIndex(np.zeros(0), np.zeros(0), 1.0).nearest(np.array([1.0]), np.array([1.0]), 5)
    assert found.row.tolist() == [-1]


def test_many_objects_are_compared_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    ra, dec = random.uniform(10, 10.1, 500), random.uniform(20, 20.1, 500)
    index, _ = indexed(ra, dec, 1.0)
    whole = index.nearest(ra, dec, 60)
    monkeypatch.setattr("nightwire.core.catalogues.zone_index.MOST_PAIRS", 300)
    parts = index.nearest(ra, dec, 60)
    assert (whole.row == parts.row).all()
    assert (whole.count == parts.count).all()
    assert whole.count.max() > 1


def test_an_object_on_the_border_of_a_zone_is_near_what_is_a_radius_away() -> None:
    """Digits of a declination decide nothing that the separation does not."""
    radius, edges = 0.001, np.arange(1, 720) * 0.25 - 90
    at_dec = edges + np.where(np.arange(719) % 2, 1, -1) * (radius / 3600)
    dec, ra = np.nextafter(edges, edges - 1000 * (at_dec - edges)), np.full(719, 10.0)
    index, number = indexed(ra, dec, 0.25)
    found, near = index.nearest(ra, at_dec, radius), separations(ra, at_dec, ra, dec) <= radius
    assert near.sum() > 20
    assert (number[found.row[near]] == np.flatnonzero(near)).all()
    assert (found.count == near).all()
