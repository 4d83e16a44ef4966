"""Files that hold catalogues, in each format, and files that hold none."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from astropy import units as u
from astropy.table import MaskedColumn, Table

from nightwire.core.catalogues import CatalogueError
from nightwire.core.catalogues.files import LeftOut, open_file

ROWS = {
    "ra": [10.0, 350.5, 0.0],
    "dec": [20.0, -5.5, 90.0],
    "name": ["one", "zwei", "trois"],
    "mag": [18.5, None, 21.0],
    "id": [1, 2, 1 << 60],
}


def written_csv(path: Path) -> None:
    rows = zip(*ROWS.values(), strict=True)
    lines = [",".join("" if one is None else str(one) for one in row) for row in rows]
    path.write_text("\n".join([",".join(ROWS), *lines]) + "\n")


def written_parquet(path: Path) -> None:
    pq.write_table(pa.table(ROWS), path)


def table() -> Table:
    masked = MaskedColumn([18.5, 0.0, 21.0], mask=[False, True, False])
    return Table({**ROWS, "mag": masked})


def written_fits(path: Path) -> None:
    table().write(path, format="fits")


def written_votable(path: Path) -> None:
    table().write(path, format="votable")


def written_ecsv(path: Path) -> None:
    table().write(path, format="ascii.ecsv")


def read(path: Path, **named: str) -> tuple[pa.Table, LeftOut]:
    """Return the rows of a file, and what was left out."""
    file, left_out = open_file(path), LeftOut()
    return pa.Table.from_batches(file.read(file.layout(**named), left_out)), left_out


@pytest.mark.parametrize("write", [written_csv, written_parquet, written_fits, written_votable, written_ecsv])
def test_every_format_says_the_same(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path / "objects")
    found, left_out = read(tmp_path / "objects")
    assert {name: found[name].to_pylist() for name in ROWS} == ROWS
    assert left_out.count == 0


def test_positions_are_found_by_their_ucds_first(tmp_path: Path) -> None:
    made = Table({"ra": [1.0], "dec": [2.0], "e1": [10.0], "e2": [20.0]})
    for name, ucd in (("ra", "pos.eq.ra"), ("e1", "pos.eq.ra;meta.main"), ("e2", "pos.eq.dec;meta.main")):
        made[name].meta["ucd"] = ucd
    made.write(tmp_path / "t.vot", format="votable")
    assert [read(tmp_path / "t.vot")[0][name].to_pylist() for name in ("ra", "dec")] == [[10.0], [20.0]]


def test_a_file_that_names_another_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"AB a secret")
    fields = "".join(f'<FIELD name="{name}" datatype="unsignedByte"/>' for name in ("ra", "dec"))
    stream = f'<DATA><BINARY><STREAM href="file://{tmp_path}/secret"/></BINARY></DATA>'
    (tmp_path / "a.vot").write_text(
        f"<VOTABLE><RESOURCE><TABLE>{fields}{stream}</TABLE></RESOURCE></VOTABLE>"
    )
    with pytest.raises(CatalogueError, match="lie elsewhere"):
        read(tmp_path / "a.vot")


@pytest.mark.parametrize("names", ["RAJ2000,DEJ2000", "_RA,_DEC", "RA_ICRS,DE_ICRS", "raMean,decMean"])
def test_positions_are_found_by_their_usual_names(names: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{names}\n-10,20\n")
    assert read(tmp_path / "a.csv")[0].to_pylist() == [{"ra": 350.0, "dec": 20.0}]


def test_hours_become_degrees(tmp_path: Path) -> None:
    made = Table({"ra": [2.0], "dec": [20.0]})
    made["ra"].unit = u.hourangle
    made.write(tmp_path / "t.ecsv", format="ascii.ecsv")
    assert read(tmp_path / "t.ecsv")[0]["ra"].to_pylist() == pytest.approx([30.0])


def test_rows_without_a_position_are_counted_by_their_lines(tmp_path: Path) -> None:
    lines = ["ra,dec,n", "1,2,a", "nan,2,b", ",2,c", "1,NaN,d", "3,4,e", *["nan,1,f"] * 9]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    found, left_out = read(tmp_path / "a.csv")
    assert found["n"].to_pylist() == ["a", "e"]
    assert str(left_out) == "12 rows without a position are left out (lines 3, 4, 5, 7, 8, …)"


def test_columns_become_what_filters_take(tmp_path: Path) -> None:
    columns = {
        "ra": pa.array([1.0], pa.float32()),
        "dec": pa.array([2], pa.int16()),
        "kind": pa.array(["star"]).dictionary_encode(),
        "day": pa.array(["2026-11-25"]).cast(pa.date32()),
        "large": pa.array([1 << 63], pa.uint64()),
        "flag": pa.array([True]),
        "curve": pa.array([[1.0, 2.0]]),
        "nothing": pa.nulls(1),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet")[0].to_pylist() == [
        {
            "ra": 1.0,
            "dec": 2.0,
            "kind": "star",
            "day": "2026-11-25",
            "large": 2.0**63,
            "flag": True,
            "nothing": None,
        }
    ]


def test_names_that_a_match_has_itself_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ra,dec,count,mag.g\n1,2,3,4\n")
    assert read(tmp_path / "a.csv")[0].column_names == ["ra", "dec", "count_", "mag_g"]


def test_no_column_takes_the_place_of_another_or_asks_whether_there_is_a_match(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("RAJ2000,DEJ2000,a.b,a_b,variable?,count,count_,ra,\n1,2,3,4,5,6,7,8,9\n")
    assert read(tmp_path / "a.csv", ra="RAJ2000")[0].to_pylist() == [
        {
            "ra": 1.0,
            "dec": 2.0,
            "a_b": 3,
            "a_b_": 4,
            "variable_": 5,
            "count_": 6,
            "count__": 7,
            "ra_": 8,
            "_": 9,
        }
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x,y\n1,2\n", "no column looks like right ascensions .* by --ra COLUMN; there are: x, y"),
        ("ra,dec\n1,2\n10,95\n", "line 3: ra 10, dec 95 is no position"),
        ("ra,dec\n1,2\n400,5\n", "line 3: ra 400, dec 5 is no position"),
        ("ra,dec\n01:02:03,5\n", "'01:02:03'"),
        ("hello world\n", "no CSV with a line of names"),
        ("", "no CSV with a line of names"),
        ("ra,dec,x,y,x\n1,2,3,4,5\n", "2 columns are called x: rename them, or name others by --columns"),
        ("ra,dec\n1,2,3\n", "Expected 2 columns, got 3"),
        ("SIMPLE  = nothing", "cannot be read as a catalogue"),
        ("<VOTABLE>", "cannot be read as a catalogue"),
        ("PAR1", "cannot be read as a catalogue"),
        ("# %ECSV", "cannot be read as a catalogue"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_catalogue_says_why(text: str, why: str, tmp_path: Path) -> None:
    from nightwire.core.catalogues import CatalogueStore

    (tmp_path / "bad").write_text(text)
    with pytest.raises(CatalogueError, match=f"^bad.*{why}"):
        CatalogueStore(tmp_path / "store").add("bad", tmp_path / "bad")
    assert CatalogueStore(tmp_path / "store").names() == []


def test_columns_that_are_not_there_are_named(tmp_path: Path) -> None:
    written_csv(tmp_path / "a.csv")
    file = open_file(tmp_path / "a.csv")
    with pytest.raises(CatalogueError, match="no column magg; there are: ra, dec, name, mag, id"):
        file.layout(columns=["magg"])
    assert file.layout(columns=["mag"]).columns == ("mag",)


def test_positions_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ra,dec,x,y\n1,2,30,40\n")
    found, _ = read(tmp_path / "a.csv", ra="x", dec="y")
    assert np.array(found["ra"]).tolist() == pytest.approx([30.0])
