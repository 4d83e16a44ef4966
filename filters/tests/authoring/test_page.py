"""The page of a trial: what its pictures show is written beside them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nightwire.filters import try_filter
from nightwire.filters.authoring.page import Axis, date, html_document, light_curve_svg
from nightwire.schemas import survey, wire


def test_a_light_curve_has_axes_bands_and_a_date(make_alert: Callable[..., dict[str, Any]]) -> None:
    alert = make_alert(7, 120.0, midpointMjdTai=61000.5, band="r", psfFluxErr=10.0)
    earlier = {**alert["diaSource"], "midpointMjdTai": 60990.5, "band": "g", "psfFlux": -50.0}
    svg = light_curve_svg(survey("sim").view({**alert, "prvDiaSources": [earlier]}))
    assert "difference flux [nJy]" in svg
    assert "days since 2025-11-21 12:00 TAI (MJD 61000.500)" in svg
    assert re.findall(r"class='band'>(\w)<", svg) == ["g", "r"]
    assert set(re.findall(r"text-anchor='middle'>(-?\d+)<", svg)) >= {"-10", "-8", "0"}
    assert set(re.findall(r"dominant-baseline='middle'>(-?\d+)<", svg)) >= {"-50", "0", "100"}


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [-1e-3, 1e9], [5e7, 5e7]])
def test_every_light_curve_has_room(values: list[float]) -> None:
    axis = Axis(np.array(values), 10.0, 90.0)
    assert ((axis.at(np.array(values)) >= 10) & (axis.at(np.array(values)) <= 90)).all()
    assert len(axis.ticks()) < 12


def test_a_date_is_that_of_its_mjd() -> None:
    assert date(51544.5) == "2000-01-01 12:00 TAI (MJD 51544.500)"


def sure(alert: Any) -> Any:
    """Not noise."""
    return alert.snr > 5


@pytest.mark.data
def test_stamps_are_named_in_the_order_of_the_eye(data: Path) -> None:
    container = (data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()
    report = try_filter(sure, [survey("lsst").view(one.record) for one in wire.read_container(container)])
    page = html_document(report)
    names = re.findall(r"<figcaption>(\w+)</figcaption>", page)
    assert names[:3] == ["science", "template", "difference"]
    assert "ZScale's limits, in an arcsinh stretch" in page
