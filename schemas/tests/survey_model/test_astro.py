"""Galactic coordinates and HEALPix pixels, of one position and of many."""

import math

import erfa  # type: ignore[import-untyped]
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from hypothesis import given
from hypothesis import strategies as st

from nightwire.schemas import survey
from nightwire.schemas.survey_model.astro import galactic, healpix

POSITIONS = st.tuples(st.floats(0, 360), st.floats(-90, 90))


@pytest.mark.parametrize(
    ("name", "ra", "dec", "longitude", "latitude"),
    [
        ("Sagittarius A*", 266.4168371, -29.0078106, 359.944209, -0.046127),
        ("M31", 10.6847083, 41.26875, 121.174329, -21.573309),
        ("north galactic pole", 192.85948, 27.12825, None, 90.0),
        ("Polaris", 37.95456067, 89.26410897, 123.280535, 26.461375),
    ],
)
def test_galactic_coordinates_are_those_of_astropy(
    name: str, ra: float, dec: float, longitude: float | None, latitude: float
) -> None:
    found = galactic(ra, dec)
    expected = SkyCoord(ra, dec, unit="deg").galactic
    assert found[1] == pytest.approx(expected.b.deg, abs=1e-5), name
    assert found[1] == pytest.approx(latitude, abs=1e-4)
    if longitude is not None:
        assert found[0] == pytest.approx(expected.l.deg, abs=1e-5)
        assert found[0] == pytest.approx(longitude, abs=1e-4)


@given(POSITIONS)
def test_galactic_coordinates_are_those_of_erfa(position: tuple[float, float]) -> None:
    longitude, latitude = galactic(*position)
    expected = erfa.icrs2g(*map(math.radians, position))
    turned = (longitude - math.degrees(expected[0]) + 180) % 360 - 180
    assert turned * math.cos(expected[1]) == pytest.approx(0, abs=1e-12)
    assert latitude == pytest.approx(math.degrees(expected[1]), abs=1e-12)
    assert 0 <= longitude <= 360


@pytest.mark.parametrize(
    ("ra", "dec", "order", "pixel"),
    [
        (45.0, 41.9, 0, 0),  # Górski et al. 2005, figure 4: the base pixels
        (135.0, 41.9, 0, 1),
        (315.0, 41.9, 0, 3),
        (0.0, 0.0, 0, 4),
        (90.0, 0.0, 0, 5),
        (45.0, -41.9, 0, 8),
        (315.0, -41.9, 0, 11),
        (45.0, 89.999, 1, 3),  # their figure 1, nested, order 1: 3 is at the north of base pixel 0
        (45.0, 1.0, 1, 0),  # and 0 at its south
        (45.0, -89.999, 1, 32),
        (-1e-20, 60.0, 0, 0),  # which Python's % turns into 360 degrees
        (45.0, 90.0, 29, 4**29 - 1),
        (45.0, -90.0, 29, 8 * 4**29),
    ],
)
def test_pixels_are_those_that_were_published(ra: float, dec: float, order: int, pixel: int) -> None:
    assert healpix(ra, dec, order) == pixel


def corners(order: int) -> np.ndarray:  # type: ignore[type-arg]
    """Return the pixels of a grid that is finer than the pixels of *order*."""
    ra, z = np.meshgrid(np.arange(0.05, 360, 0.9), np.linspace(-0.9995, 0.9995, 401))
    return np.asarray(healpix(ra.ravel(), np.degrees(np.arcsin(z.ravel())), order))


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_pixels_are_of_equal_area(order: int) -> None:
    counts = np.bincount(corners(order), minlength=12 * 4**order)
    assert len(counts) == 12 * 4**order
    assert counts == pytest.approx(np.full(len(counts), counts.mean()), rel=0.25)


@given(POSITIONS, st.integers(0, 28))
def test_a_pixel_lies_in_that_of_the_order_below(position: tuple[float, float], order: int) -> None:
    assert healpix(*position, order + 1) // 4 == healpix(*position, order)


@given(st.lists(POSITIONS, min_size=1), st.integers(0, 29))
def test_arrays_are_what_single_positions_are(positions: list[tuple[float, float]], order: int) -> None:
    ra, dec = (np.array(one) for one in zip(*positions, strict=True))
    assert healpix(ra, dec, order).tolist() == [healpix(*one, order) for one in positions]
    together, single = galactic(ra, dec), [galactic(*one) for one in positions]
    assert [tuple(one) for one in zip(*(values.tolist() for values in together), strict=True)] == single


@pytest.mark.parametrize("order", [-1, 30])
def test_orders_that_do_not_exist_are_refused(order: int) -> None:
    with pytest.raises(ValueError, match=f"orders 0 to 29, not {order}"):
        healpix(1.0, 2.0, order)


def test_an_alert_has_its_place_and_colours() -> None:
    def point(mjd: float | None, flux: float | None, band: str) -> dict[str, object]:
        return {"midpointMjdTai": mjd, "psfFlux": flux, "band": band, "ra": 1.0, "dec": 2.0}

    alert = {
        "diaSource": {**point(60_010.0, 3631.0, "g"), "ra": 266.4168371, "dec": -29.0078106},
        "prvDiaSources": [point(60_005.0, 36310.0, "r"), point(60_001.0, 3.631, "r"), point(None, 1.0, "r")],
        "prvDiaForcedSources": [point(60_006.0, None, "r"), point(60_007.0, 0.0, "r")],
    }
    view = survey("sim").view(alert)
    assert view.galactic_latitude == pytest.approx(-0.046127, abs=1e-4)
    assert view.galactic_longitude == pytest.approx(359.944209, abs=1e-4)
    assert (view.healpix, view.healpix_at(0)) == (healpix(view.ra, view.dec, 12), 7)
    assert view.magnitudes("r") == pytest.approx([30.0, 20.0])
    assert view.colour("g", "r") == pytest.approx(2.5)
    assert (view.colour("g", "i"), view.colour("u", "r"), view.magnitudes("i").size) == (None, None, 0)
    nowhere = survey("sim").view({"diaSource": {"ra": 10.0, "dec": 91.0}})
    assert (nowhere.healpix, nowhere.galactic_latitude, nowhere.galactic_longitude) == (None, None, None)
