"""Answers as VOTable: types, units, nulls, and whatever a cell or a name may hold."""

import io

import pytest
from astropy.io import votable as astropy_votable
from astropy.table import Table

from nightwire.directory.answers.votable import votable
from nightwire.directory.model import Rows


def read(rows: Rows) -> Table:
    return Table.read(io.BytesIO(votable({"answer": rows})), format="votable")


def test_numbers_have_types_and_units_and_may_be_unknown() -> None:
    rows = Rows(["topic", "rate", "newest", "partitions"], [("a", 1.5, None, 8), ("b", None, 1 << 40, 4)])
    table = read(rows)
    assert (table["rate"].unit, table["newest"].unit, table["partitions"].unit) == ("1/s", "ms", None)
    assert (table["rate"].dtype, table["newest"].dtype) == ("float64", "int64")
    assert list(table["newest"].mask) == [True, False]
    assert list(table["rate"].mask) == [False, True]
    assert table["newest"][1] == 1 << 40
    assert "Records a second" in table["rate"].description


def test_columns_without_rows_without_values_and_of_one_name() -> None:
    assert read(Rows(["name", "rate"], [])).colnames == ["name", "rate"]
    assert read(Rows(["silence"], [(None,), (None,)]))["silence"].tolist() == ["", ""]
    document = votable({"answer": Rows(["name", "name", "<b> c"], [("a", "b", "c")])})
    fields = astropy_votable.parse(io.BytesIO(document)).get_first_table().fields
    assert [field.name for field in fields] == ["name", "name", "<b> c"]


@pytest.mark.parametrize(
    "cell", ["<img src=x>&\"']]>", "é☃", "a\x00\x1bb", "\ufffe", "\ud800", b"\x01\xff", ""]
)
def test_any_cell_can_be_read(cell: str | bytes) -> None:
    (found,) = read(Rows(["name"], [(cell,)]))["name"].tolist()
    broken = {"a\x00\x1bb": "a\ufffd\ufffdb", "\ufffe": "\ufffd", "\ud800": "\ufffd", b"\x01\xff": "01ff"}
    assert found == broken.get(cell, cell)


def test_mixed_cells_are_text() -> None:
    assert read(Rows(["a"], [(1,), ("x",), (None,), (2.5,)]))["a"].tolist() == ["1", "x", "", "2.5"]
    assert read(Rows(["a"], [(1,), (2.5,)]))["a"].tolist() == [1.0, 2.5]
