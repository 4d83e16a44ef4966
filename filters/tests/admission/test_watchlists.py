"""Watchlists: what is sent of a file, what a filter becomes by it, and what the engine takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightwire.core.catalogues import Catalogue, CatalogueError, CatalogueStore, Columns
from nightwire.filters.admission.catalogue_names import keep_watchlist
from nightwire.filters.authoring.client import Submission, text_submission
from nightwire.filters.authoring.watchlist import near_targets, watchlist_text
from nightwire.filters.language import FilterError, compile_python, compile_sql

KEEP = "def keep(alert):\n    return alert.flux\n"


def near(submission: Submission | None, radius: float = 2.0) -> Submission:
    return near_targets(submission, "me/mine", radius, b"ra,dec\n1,2\n")


def test_a_watchlist_alone_is_a_condition() -> None:
    assert near(None).source == "MATCH('me/mine', 2.0) IS NOT NULL"
    assert compile_sql(near(None).source).names


def test_a_condition_is_asked_of_alerts_near_targets() -> None:
    found = near(Submission("sql", "WHERE snr > 5 OR snr < 1;", ""))
    assert found.source == "MATCH('me/mine', 2.0) IS NOT NULL AND (snr > 5 OR snr < 1)"
    assert (found.language, found.watchlist) == ("sql", b"ra,dec\n1,2\n")
    compile_sql(found.source)


def test_a_function_is_asked_of_alerts_near_targets_and_its_rank_stays() -> None:
    found = near(Submission("python", KEEP, "keep"), 1.5)
    assert found.entry == "keep_on_watchlist"
    names = compile_python(found.source, found.entry).names
    assert {"flux", "@me/mine:1500?"} <= set(names)


@pytest.mark.parametrize(
    "asked", [None, Submission("sql", "snr > 5 OR snr < 1", ""), Submission("python", KEEP, "keep")]
)
def test_a_watchlist_that_is_sent_anew_replaces_the_one_before(asked: Submission | None) -> None:
    assert near(near(asked), 1.5).source == near(asked, 1.5).source
    once = near(asked)
    if asked is not None and asked.language == "python":
        again = text_submission("python", once.source, once.entry)  # as an editor sends it
        assert (near(again, 1.5).source.count("def keep_on_watchlist"), near(again, 1.5).entry) == (
            1,
            once.entry,
        )
        assert "alert.match('me/mine', 1.5)" in near(again, 1.5).source


def test_a_function_of_columns_has_no_watchlist() -> None:
    with pytest.raises(FilterError, match="goes with a function of one alert"):
        near(Submission("python", "def keep(alerts):\n    return alerts.flux > 1\n", "keep"))


def test_a_radius_that_is_none_is_refused() -> None:
    with pytest.raises(FilterError, match="a radius lies between"):
        near(None, 0.0)


def test_any_format_is_sent_as_csv(tmp_path: Path) -> None:
    rows = {"RAJ2000": [1.0, None], "DEJ2000": [2.0, 3.0], "label": ["a", "b"], "z": [0.1, 0.2]}
    pq.write_table(pa.table(rows), tmp_path / "targets")
    text, remark = watchlist_text(tmp_path / "targets", Columns(kept=("label",)))
    assert text == b'ra,dec,"label"\n1,2,"a"\n'
    assert remark == "1 rows without a position are left out (lines 2)"


def test_what_is_no_watchlist_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    with pytest.raises(FilterError, match="no column looks like right ascensions"):
        watchlist_text(tmp_path / "t.csv", Columns())
    (tmp_path / "t.csv").write_text("ra,dec\n1,2\n")
    monkeypatch.setattr("nightwire.filters.authoring.watchlist.MAX_WATCHLIST", 10)
    with pytest.raises(FilterError, match="1 targets, 11 bytes as CSV; a watchlist has 10"):
        watchlist_text(tmp_path / "t.csv", Columns())


@pytest.mark.parametrize("rows", ["", ",\n"])
def test_a_watchlist_of_nothing_is_told(rows: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"ra,dec\n{rows}")
    with pytest.raises(FilterError, match=r"t\.csv has no targets with a position"):
        watchlist_text(tmp_path / "t.csv", Columns())


def request(text: bytes, **more: Any) -> dict[str, Any]:
    return {"owner": "me", "name": "mine", "watchlist": text} | more


def test_the_engine_keeps_each_version(tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path)
    for label in (b"a", b"b"):
        keep_watchlist(store, request(b'"ra","dec","label"\n1,2,"%s"\n' % label))
    assert store.names() == ["me/mine"]
    assert len(store.versions("me/mine")) == 2
    newest = store.open("me/mine", store.describe("me/mine").version)
    assert isinstance(newest, Catalogue)
    assert newest.description.columns == {"ra": "double", "dec": "double", "label": "string"}


def test_types_and_nulls_are_those_of_the_file(tmp_path: Path) -> None:
    rows = {
        "ra": [1.0, 2.0, 3.0], "dec": [0.0] * 3, "label": ["007", None, ""], "n": [2**60 + 1, None, 7],
        "z": [0.5, float("nan"), None], "note": ["NA", 'a "b"', "1,5"],
        "whole": [1.0, None, -20.0],
    }  # fmt: skip
    pq.write_table(pa.table(rows), tmp_path / "targets")
    store = CatalogueStore(tmp_path / "catalogues")
    keep_watchlist(store, request(watchlist_text(tmp_path / "targets", Columns())[0]))
    kept = store.open("me/mine", store.describe("me/mine").version)
    assert isinstance(kept, Catalogue)
    found = kept.match(np.array(rows["ra"]), np.zeros(3), 1.0, ["label", "n", "z", "note", "whole"])
    assert {name: one.to_pylist() for name, one in found.items()} == {
        "label": ["007", None, ""], "n": [2**60 + 1, None, 7], "z": [0.5, None, None],
        "note": ["NA", 'a "b"', "1,5"],
        "whole": [1.0, None, -20.0],
    }  # fmt: skip
    assert (found["whole"].type, found["n"].type) == (pa.float64(), pa.int64())


@pytest.mark.parametrize("text", [b"PAR1\0\0", b"SIMPLE  =", b'{"3": [1]}', b"name,ra,dec\na,1,2\n", b"\0"])
def test_the_engine_reads_nothing_but_csv(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="no CSV whose first columns are ra and dec"):
        keep_watchlist(CatalogueStore(tmp_path), request(text))


def test_what_looks_like_another_format_inside_is_text(tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path)
    keep_watchlist(store, request(b'"ra","dec","label"\n1,2,"<VOTABLE"\n'))
    assert store.describe("me/mine").rows == 1


def test_an_owners_columns_are_not_without_end(tmp_path: Path) -> None:
    """Reading very many takes the engine, and so all owners, long."""
    text = b"ra,dec" + b"".join(b",c%d" % n for n in range(600)) + b"\n1,2" + b",1" * 600 + b"\n"
    with pytest.raises(CatalogueError, match="it has 602 columns, limit is 500"):
        keep_watchlist(CatalogueStore(tmp_path), request(text))


@pytest.mark.parametrize("radius", [1234.567, 2.0000001, 0.001, 2, np.float64(1.5)])
def test_a_radius_is_the_same_in_both_languages(radius: float) -> None:
    by_sql, by_code = near(None, radius), near(Submission("python", KEEP, "keep"), radius)
    (name,) = {one.partition(".")[0] for one in compile_sql(by_sql.source).names}
    assert f"{name}?" in compile_python(by_code.source, by_code.entry).names


def test_an_owner_has_so_much_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CatalogueStore(tmp_path)
    keep_watchlist(store, request(b"ra,dec\n1,2\n"))
    monkeypatch.setattr("nightwire.filters.admission.catalogue_names.MAX_OWNED", 100)
    with pytest.raises(CatalogueError, match="me's catalogues would have more than 100 bytes"):
        keep_watchlist(store, request(b"ra,dec\n1,3\n"))
    keep_watchlist(store, request(b"ra,dec\n1,3\n", owner="ann"))  # who has nothing yet
