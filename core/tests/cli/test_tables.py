"""Tables fit 80 columns: no name is cut, no word broken, no number cropped; whole where piped."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from nightwire.core.accounting import StageTotal
from nightwire.core.cli.tables import (
    Column,
    Listing,
    fitting_columns,
    short_number,
    show_tables,
    stage_table,
)

COLUMNS = (
    Column("filter"),
    Column("seen", 1, number=True),
    Column("kept", 3, number=True),
    Column("state", 2, max_width=12),
)
NAME = "a.broker/with_a_filter_of_a_long_name"
ROWS = (
    (NAME, 123_456_789, 1_200, "suspended: it raised\nZeroDivisionError on 100 of 100 alerts"),
    ("me/b", 0, None, "live"),
)


def lines(listing: Listing, width: int) -> list[str]:
    console = Console(width=width, record=True, force_terminal=True, file=io.StringIO())
    console.print(listing, crop=not listing.wide)
    return console.export_text().rstrip("\n").splitlines()


@pytest.mark.parametrize("width", [50, 60, 80, 200])
def test_names_are_whole_and_each_row_is_one_line(width: int) -> None:
    shown = lines(Listing(COLUMNS, ROWS), width)
    assert max(map(len, shown)) <= width
    assert shown[1].startswith(f"{NAME} ")
    assert shown[2].startswith("me/b ")


def test_numbers_are_shortened_before_columns_are_left_out() -> None:
    assert "123,456,789" in lines(Listing(COLUMNS, ROWS), 80)[1]
    narrow = lines(Listing(COLUMNS, ROWS), 68)
    assert "123M" in narrow[1]
    assert "1,200" in narrow[1]
    assert lines(Listing(COLUMNS, ROWS), 50)[-1].split() == ["without", "state"]


def test_reasons_are_one_line_cut_off_where_they_do_not_fit() -> None:
    assert "suspended: it raised Z" in lines(Listing(COLUMNS, ROWS), 90)[1]
    assert lines(Listing(COLUMNS, ROWS), 80)[1].rstrip().endswith("…")


def test_wide_shows_all() -> None:
    (_, first, _) = lines(Listing(COLUMNS, ROWS, wide=True), 40)
    assert first.split() == [NAME, "123,456,789", "1,200", *ROWS[0][3].split()]


def test_piped_it_is_tab_separated_with_all_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    show_tables(Listing(COLUMNS, [*ROWS, ("x", Text("7", "red"), 0, "")]), Text("wrong: a", "red"))
    assert capsys.readouterr().out.splitlines() == [
        "filter\tseen\tkept\tstate",
        f"{NAME}\t123456789\t1200\tsuspended: it raised ZeroDivisionError on 100 of 100 alerts",
        "me/b\t0\t\tlive",
        "x\t7\t0\t",
        "wrong: a",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (9_999, "9,999"), (10_000, "10.0k"), (-12_345_678, "-12.3M"), (5_600_000_000, "5.6G")],
)
def test_numbers_keep_three_digits(number: int, text: str) -> None:
    assert short_number(number) == text


def test_columns_of_the_highest_order_are_left_out_first() -> None:
    first, second, third = (Column(name, order) for name, order in (("a", 0), ("b", 9), ("c", 1)))
    widths = {first: 10, second: 10, third: 10}
    assert list(fitting_columns(widths, 34)) == [first, second, third]
    assert list(fitting_columns(widths, 30)) == [first, third]
    assert fitting_columns({Column("a", 1, max_width=4): 10}, 7) == {Column("a", 1, max_width=4): 7}


def test_filters_that_add_up_are_one_line_and_each_that_does_not_its_own() -> None:
    stages = [
        StageTotal("producer", 9, 9, 0, 0, 0, 0),
        *(StageTotal(f"filter.me.{name}", 9, 4, 5, 0, 0, 0) for name in "abc"),
        StageTotal("filter.me.lost", 9, 4, 4, 0, 0, 0),
    ]
    together = stage_table(stages)
    assert [row[0] for row in together.rows] == ["producer", "filter.me.lost", "3 filters"]
    assert together.rows[-1][1:4] == [27, 12, 15]
    assert len(stage_table(stages, each=True).rows) == 5
