"""Queries by id, object, cone and SQL, and the formats of answers."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from astropy.coordinates import SkyCoord
from astropy.io.votable import parse_single_table
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from archive.tests.conftest import alert
from nightwire.archive import Archive, ArchiveError, QueryError
from nightwire.archive.querying import FORMATS, avro_parts, parse_columns, votable_error
from nightwire.archive.querying.cone import Cone, merge_ranges
from nightwire.archive.querying.light_curve import merge
from nightwire.archive.querying.min_max import MinMax
from nightwire.archive.writing.columns import healpix
from nightwire.schemas.wire import read_container


def test_an_id_and_an_object_are_found(archived: Archive) -> None:
    (row,) = archived.get(42).to_pylist()
    assert (row["id"], row["object_id"], row["offset"]) == ("42", "1000014", 41)
    assert archived.object("1000014").column("id").to_pylist() == ["42", "43", "44"]
    assert (len(archived.get("none")), len(archived.object(5))) == (0, 0)


def test_whole_alerts_have_their_stamps(archived: Archive) -> None:
    (whole,) = archived.packets(42)
    assert archived.decode(whole).alert["cutoutScience"] == alert(42)["cutoutScience"]
    rows = archived.object(1000014)
    parts = [*avro_parts(archived.packets_of(rows), archived.decode)]
    assert {number for number, _ in parts} == {0}
    made = b"".join(part for _, part in parts)
    assert [one.record["diaSourceId"] for one in read_container(made)] == [42, 43, 44]


@pytest.mark.parametrize(
    ("ra", "dec", "radius"), [(11, -20.25, 1 / 60), (11.005, -20.2, 0.3), (0, 90, 111.0), (11, -20.25, 180)]
)
def test_a_cone_has_what_astropy_finds(archived: Archive, ra: float, dec: float, radius: float) -> None:
    every = archived.query("SELECT id, ra, dec FROM sim")
    positions = SkyCoord(every.column("ra").to_numpy(), every.column("dec").to_numpy(), unit="deg")
    apart = positions.separation(SkyCoord(ra, dec, unit="deg")).deg
    found = archived.cone(ra, dec, radius)
    expected = {one for one, far in zip(every.column("id").to_pylist(), apart, strict=True) if far <= radius}
    assert set(found.column("id").to_pylist()) == expected
    distances = found.column("distance").to_pylist()
    assert distances == sorted(distances)
    assert distances == pytest.approx(sorted(far for far in apart if far <= radius), abs=1e-9)


@given(
    st.floats(0, 360, exclude_max=True),
    st.floats(-90, 90),
    st.floats(1e-4, 170),
    st.floats(0, 1),
    st.floats(0, 360),
)
@example(0.0, 0.0, 139.0, 1.0, 0.0)
def test_the_ranges_of_a_cone_hold_all_of_it(
    ra: float, dec: float, radius: float, share: float, angle: float
) -> None:
    centre = SkyCoord(ra, dec, unit="deg")
    at = centre.directional_offset_by(
        np.radians(angle) * 57.29577951308232 * _DEGREE, share * radius * 0.999 * _DEGREE
    )
    pixel = healpix(pa.array([at.ra.deg]), pa.array([at.dec.deg]))[0].as_py()
    assert any(low <= pixel <= high for low, high in Cone(ra, dec, radius).ranges)


from astropy import units  # noqa: E402

_DEGREE = units.deg


def test_ranges_are_joined_at_the_smallest_gaps() -> None:
    assert merge_ranges([(0, 1), (2, 3), (10, 11), (100, 101)], 2) == [(0, 11), (100, 101)]
    assert merge_ranges([(0, 1), (2, 3)], 32) == [(0, 3)]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("INSERT INTO sim VALUES (1)", "INSERT"),
        ("DROP VIEW sim", "DROP"),
        ("COPY (SELECT 1) TO 'x.csv'", "COPY"),
        ("WITH a AS (DELETE FROM sim RETURNING 1) SELECT * FROM a", "Catalog Error|read-only|Binder"),
        ("ATTACH 'x.db'", "ATTACH"),
        ("SELECT 1; SELECT 2", "SELECT, SELECT"),
        ("SELECT nothing FROM sim", "nothing"),
        ("SELECT FROM WHERE", "LINE 1"),
        ("SELECT * FROM read_text('/etc/passwd')", "disabled"),
        ("SELECT * FROM read_csv('/tmp/x')", "disabled"),
        ("FROM read_text('{folder}/../beside')", "disabled"),
        ("FROM read_text('{folder}/sim/link')", "disabled"),
        ("FROM sniff_csv('/etc/passwd')", "disabled"),
        ("FROM read_blob('http://127.0.0.1:1/')", "disabled"),
        ("FROM query('COPY (SELECT 1) TO ''{folder}/sim/x''')", "single SELECT"),
        ("SELECT * FROM duckdb_secrets()", "disabled"),
        ("FROM enable_logging()", "locked"),
        ("SELECT getenv('HOME')", "getenv"),
        ("INSTALL httpfs", "LOAD"),
        ("PRAGMA database_list", "PRAGMA"),
        ("EXPORT DATABASE '{folder}/out'", "EXPORT"),
        ("IMPORT DATABASE '{folder}'", "PRAGMA"),
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "depth"),
        ("SET threads = 99", "SET"),
        ("", "nothing"),
    ],
)
def test_sql_reads_the_archive_and_nothing_else(archived: Archive, sql: str, why: str) -> None:
    link = Path(archived.store.url, "sim", "link")
    link.unlink(missing_ok=True)
    link.symlink_to("/etc/passwd")
    with pytest.raises(QueryError, match=why):
        archived.query(sql.replace("{folder}", archived.store.url))
    assert archived.query("SELECT count(*) AS n FROM sim").to_pylist() == [{"n": 298}]


def test_sums_are_numbers_in_every_form(archived: Archive) -> None:
    """DuckDB adds integers up to decimals, which JSON and VOTable would have as texts."""
    found = archived.query("SELECT sum(visit) AS v, 1.5 AS d, sum(9e18::BIGINT) AS large FROM sim")
    assert found.to_pylist() == [{"v": 7 * 298, "d": 1.5, "large": 298 * 9e18}]
    assert json.loads(FORMATS["json"][1](found)) == found.to_pylist()
    table = parse_single_table(io.BytesIO(FORMATS["votable"][1](found)))
    assert [field.datatype for field in table.fields] == ["long", "double", "double"]
    bands = FORMATS["json"][1](archived.query("SELECT histogram(band) AS h FROM sim"))
    assert json.loads(bands) == [{"h": [["r", 298]]}]


@pytest.mark.parametrize("sql", ["SHOW TABLES", "SELECT 1 AS one FROM SIM LIMIT 2", "DESCRIBE Sim_Packets"])
def test_tables_are_listed_and_named_in_any_case(archived: Archive, sql: str) -> None:
    with Archive(archived.store.url) as found:
        assert len(found.query(sql)) >= 2


def test_who_asks_for_an_array_is_told_where_it_is(archived: Archive) -> None:
    with pytest.raises(QueryError, match="Arrays and stamps are no columns"):
        archived.query("SELECT id, unnest(prvDiaSources) FROM sim")


def test_who_asks_for_a_survey_that_is_not_archived_is_told_which_are(archived: Archive) -> None:
    with pytest.raises(QueryError, match="SHOW TABLES lists what is archived"):
        archived.query("SELECT count(*) FROM ztf")


def test_a_question_that_takes_too_long_is_ended(archived: Archive) -> None:
    with pytest.raises(QueryError, match="no answer within"):
        archived.query("SELECT count(*) FROM range(1000000000) a, range(1000) b", timeout=0.2)


def test_what_is_no_cone_is_named(archived: Archive) -> None:
    for at, why in (
        (("nan", 0, 1), "ra"),
        ((0, 91, 1), "dec"),
        ((0, 0, -1), "radius"),
        ((0, 0, "nan"), "radius"),
    ):
        with pytest.raises(ArchiveError, match=why):
            archived.cone(*map(float, at))
    with pytest.raises(ArchiveError, match="no alerts of 'lsst'; there are: sim"):
        archived.get(1, "lsst")
    with pytest.raises(QueryError, match="no column"):
        parse_columns("id, (SELECT 1)")


def test_other_columns_come_from_the_wide_table(archived: Archive) -> None:
    columns = parse_columns("id,diaSource.psfFluxErr")
    (row,) = archived.get(42, columns=columns).to_pylist()
    assert (row["id"], round(row["psfFluxErr"], 1)) == ("42", 363.1)
    found = archived.cone(11, -20.25, 0.1, columns=columns)
    assert (len(found), found.schema.names) == (20, ["id", "psfFluxErr", "distance"])


def test_a_light_curve_has_each_point_once(archived: Archive) -> None:
    curve = archived.light_curve(1000014)
    assert np.allclose(curve.column("mjd_tai").to_numpy(), 61000.6 + np.arange(42, 45) * 1e-4)
    one = {
        "mjd_tai": [2.0, 1.0],
        "band": ["r", "g"],
        "flux": [5.0, 4.0],
        "flux_error": [1, 1],
        "ra": [0, 0],
        "dec": [0, 0],
    }
    other = one | {"mjd_tai": [2.0, 3.0], "band": ["r", "r"], "flux": [6.0, 7.0]}
    assert merge([one, other]).column("flux").to_pylist() == [4.0, 6.0, 7.0]
    assert len(merge([])) == 0
    assert len(merge([one | {"mjd_tai": [float("nan"), 1.0]}])) == 1


def test_answers_come_in_all_forms(archived: Archive) -> None:
    found = archived.get(42, columns=parse_columns("id,ra,diaSource,timestamp"))
    made = {name: make(found) for name, (_, make) in FORMATS.items()}
    assert json.loads(made["json"])[0]["diaSource"]["band"] == "r"
    assert b"diaSource.band" in made["csv"]
    assert parquet.read_table(io.BytesIO(made["parquet"])).equals(found)
    assert pa.ipc.open_stream(made["arrow"]).read_all().equals(found)
    table = parse_single_table(io.BytesIO(FORMATS["votable"][1](archived.get(42))))
    assert (table.get_field_by_id_or_name("ra").unit, table.get_field_by_id_or_name("ra").ucd) == (
        "deg",
        "POS_EQ_RA_MAIN",
    )
    assert table.to_table()["id"][0] == "42"
    assert len(parse_single_table(io.BytesIO(FORMATS["votable"][1](archived.get("none")))).array) == 0
    assert b'name="Error"' in votable_error("no \0 RA")


def test_records_are_found_by_offset_and_by_time(archived: Archive) -> None:
    tables = archived.tables("sim")
    assert [one.offset for one in tables.read_packets(0, 95, 105)] == [*range(95, 105)]
    from archive.tests.conftest import NOON

    assert tables.first_since(0, NOON + 150) == 150
    assert tables.first_since(0, NOON + 10**6) is None
    assert [*tables.read_packets(1, 0, 10)] == []


def test_parts_that_can_hold_a_value_are_found_and_those_of_which_nothing_is_known() -> None:
    large = 1 << 61  # floats would not tell it from the next
    numbers = MinMax(pa.array([5, None, large + 1, 2]), pa.array([9, 7, large + 1, None]))
    assert numbers.may_contain(6, 6).tolist() == [True, True, False, True]
    assert numbers.may_contain(large, large).tolist() == [False, True, False, True]
    assert numbers.may_contain(None, 4).tolist() == [False, True, False, True]
    assert numbers.may_contain(10, None).tolist() == [False, True, True, True]
    words = MinMax(pa.array(["a", None]), pa.array(["b", "z"]))
    assert words.may_contain("c", "c").tolist() == [False, True]
    times = pa.array([0, 5], pa.timestamp("us", tz="UTC"))
    assert MinMax(times, times).may_contain(times[1], None).tolist() == [False, True]
