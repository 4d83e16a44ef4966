"""Rows of alerts on a terminal."""

import pytest

from nightwire.consumers.formats.alert_output import WIDTHS, columns_for, table_heading, table_row


def test_a_row_keeps_its_columns_and_the_end_of_what_is_too_long() -> None:
    columns = {"id": 8, "mag": 5}
    assert table_heading(columns) == "id          mag"
    assert table_row({"id": "ivo://gsfc/gcn#123456", "mag": "9.1"}, columns) == "…#123456    9.1"


@pytest.mark.parametrize(
    ("width", "dropped"),
    [
        (200, set()),
        (105, set()),
        (104, {"object"}),
        (80, {"object", "band"}),
        (1, {"object", "band", "dec", "ra", "mag"}),
    ],
)
def test_a_narrow_terminal_shows_fewer_columns(width: int, dropped: set[str]) -> None:
    assert set(WIDTHS) - set(columns_for(width, WIDTHS)) == dropped
