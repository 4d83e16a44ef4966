"""An alert on one line."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from nightwire.consumers.alert.summary import Summary, summarise, utc
from nightwire.schemas import survey


@pytest.mark.parametrize(
    ("mjd_tai", "expected"),
    [
        (61000.0, datetime(2025, 11, 20, 23, 59, 23, tzinfo=UTC)),  # TAI is 37 s ahead since 2017
        (57754.0, datetime(2016, 12, 31, 23, 59, 24, tzinfo=UTC)),  # 36 s, before the leap second
        (float("nan"), None),
        (1e12, None),
    ],
)
def test_leap_seconds_are_taken_off(mjd_tai: float, expected: datetime | None) -> None:
    assert utc(mjd_tai) == expected


def test_an_alert_is_summarised_by_canonical_names(make_alert: Callable[..., dict[str, Any]]) -> None:
    summary = summarise({}, survey("sim").view(make_alert(5)))
    assert summary.texts() == {
        "id": "5",
        "object": "1005",
        "time (UTC)": "2025-11-20 23:59:23",
        "ra": " 10.50000",
        "dec": "-20.25000",
        "band": "r",
        "mag": "22.50",  # 3631 nJy = 1e-9 of 3631 Jy
        "S/N": "10.0",
    }


def test_a_field_of_another_kind_than_announced_is_left_empty(
    make_alert: Callable[..., dict[str, Any]],
) -> None:
    view = survey("sim").view(make_alert(5, psfFlux="bright", midpointMjdTai="now"))
    summary = summarise({}, view)
    assert (summary.magnitude, summary.snr, summary.time, summary.ra) == (None, None, None, 10.5)


def test_a_voevent_is_summarised_by_its_ivorn() -> None:
    event = {
        "ivorn": "ivo://a/b#c",
        "role": "test",
        "event_time": "2026-01-02T03:04:05",
        "ra": 1,
        "dec": None,
    }
    summary = summarise(event, None)
    assert summary == Summary("ivo://a/b#c", "test", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), 1.0)
