"""An alert on one line."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from nightwire.consumers.alert.summary import Summary, summarise, utc
from nightwire.consumers.formats.alert_output import WIDTHS, table_row
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


def test_what_flows_make_is_summarised_by_what_it_says() -> None:
    """Windows and joins, whatever survey the reader was told."""
    who = {"flow": "bright", "stone": "often", "object": "7"}
    causes = [{"alert": str(number)} for number in range(1, 8)]
    said = {"function": "mean", "value": 3.25, "count": 7, "end": 60_000.0, "causes": causes}
    summary = summarise(who | said, survey("sim").view(who | said))
    assert (summary.id, summary.object) == ("bright.often", "7")
    assert summary.says == "mean 3.25 of 7 alerts: 7 6 5 4 3 and 2 more"
    row = table_row(summary.texts() | {"topic": "broker.ann.x"}, WIDTHS | {"topic": 12})
    assert row.split()[:3] == ["bright.often", "7", "2023-02-24"]
    assert row.endswith(f"{summary.says}  broker.ann.x")
    known = [{"alert": "5", "mjd_tai": None}]
    assert summarise(who | {"alerts": known, "returns": [{}]}, None).says == "1 alerts, 1 returns: 5"


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
