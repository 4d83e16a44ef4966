"""Positions in every usual writing; ids and names are none."""

import pytest

from nightwire.portal.model import Position, parse_query

PLACE = (158.004167, -5.336111)
WRITINGS = [
    "158.004167 -5.336111", "158.004167, −5.336111", "+158.004167 -5.336111", "158.004167° -5.336111°",
    "158.004167d -5.336111d", "10:32:01.0 -05:20:10", "10 32 01.0 -05 20 10", "10h32m01s -5d20m10s",
    "10h32m01.0s, -05°20'10\"", "J103201.0-052010", "10:32:01.0,-05:20:10",
]  # fmt: skip


@pytest.mark.parametrize("text", WRITINGS)
def test_a_position_is_read_however_it_is_written(text: str) -> None:
    found = parse_query(text).position
    assert found is not None
    assert (found.ra, found.dec) == pytest.approx(PLACE, abs=2e-6)


def test_a_radius_stands_behind() -> None:
    assert parse_query('158 -5 r=30"').radius == pytest.approx(30 / 3600)
    assert parse_query("158 -5, radius = 2 arcmin").radius == pytest.approx(2 / 60)
    assert parse_query("158 -5 r=1.5d") == parse_query("158 -5 r=1.5°")
    assert parse_query("10:00:00 -5:00:00 r=7").radius == pytest.approx(7 / 3600)


@pytest.mark.parametrize(
    "text",
    ["", "ZTF18abcdefg", "169813006270595637", "filter.ann.bright", "ivo://a/b#c", "361 0", "10 91", "m31",
     "10:99:00 +5:00:00", "12 30", "<script>", "1 2 3 4 5 6 7 8", "::", "+-", "1" * 500],
)  # fmt: skip
def test_what_is_no_position_is_none(text: str) -> None:
    found = parse_query(text).position
    assert found == (Position(12, 30) if text == "12 30" else None)
