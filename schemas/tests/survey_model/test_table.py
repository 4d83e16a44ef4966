"""Alerts as columns: the same values as one alert at a time."""

import gc
import tarfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightwire.schemas import (
    AlertDecoder,
    AlertTable,
    AlertView,
    Codec,
    Column,
    Point,
    PreparedHistory,
    PreparedRows,
    survey,
    wire,
)
from nightwire.schemas.survey_model.attribute_names import (
    ID_ATTRIBUTES,
    MEASUREMENT_ATTRIBUTES,
    POSITION_ATTRIBUTES,
    SERIES_ATTRIBUTES,
)
from nightwire.schemas.survey_model.series import by_time
from schemas.tests.survey_model.random_alerts import batches

SCALARS = [*ID_ATTRIBUTES, *MEASUREMENT_ATTRIBUTES, *POSITION_ATTRIBUTES]
CANONICAL = [
    *SCALARS,
    *(f"{kind}.{name}" for kind in SERIES_ATTRIBUTES for name in MEASUREMENT_ATTRIBUTES),
    "colour",
    "magnitudes",
]
NAN = float("nan")
SURVEYS = ["elasticc", "lsst", "sim", "ztf"]


def same(one: Any, other: Any) -> bool:
    """Whether two values are of one type and equal to the bit; NaN is NaN."""
    return type(one) is type(other) and repr(one) == repr(other)


def value(column: Column, row: int) -> Any:
    """Return a row's value, or its list of values."""
    return column.items[row] if column.offsets is None else column.row(row)


def check(table: AlertTable, row: int, alert: AlertView) -> None:
    """Check that a row of a table is the alert."""
    for name in SCALARS:
        assert same(value(table[name], row), getattr(alert, name)), name
    for name in MEASUREMENT_ATTRIBUTES:
        expected = [getattr(point, name) for point in alert.history]
        assert same(value(table[f"history.{name}"], row), expected), name
    curve = alert.light_curve()
    for name in curve:
        assert same(value(table[f"light_curve.{name}"], row), curve[name].tolist()), name
    assert same(value(table.colour("g", "r"), row), alert.colour("g", "r"))
    assert same(value(table.magnitudes("g"), row), alert.magnitudes("g").tolist())
    assert same(value(table.healpix_at(3), row), alert.healpix_at(3))
    check_view(table.view(row), alert)


def check_points(seen: list[Point], expected: list[Point]) -> None:
    """Check that points have all values and fields of those of a decoded alert."""
    assert len(seen) == len(expected)
    for one, other in zip(seen, expected, strict=True):
        assert {name: repr(getattr(one, name)) for name in MEASUREMENT_ATTRIBUTES} == {
            name: repr(getattr(other, name)) for name in MEASUREMENT_ATTRIBUTES
        }
        assert repr(dict(one)) == repr(dict(other))


def check_view(view: AlertView, alert: AlertView) -> None:
    """Check that a view of a row is the alert."""
    for name in SCALARS:
        assert same(getattr(view, name), getattr(alert, name)), name
    for name in MEASUREMENT_ATTRIBUTES:
        expected = [getattr(point, name) for point in alert.history]
        assert same([getattr(point, name) for point in view.history], expected), name
    curve, seen = alert.light_curve(), view.light_curve()
    assert list(seen) == list(curve)
    for name in curve:
        assert same(seen[name].tolist(), curve[name].tolist()), name
        assert seen[name].dtype.kind == curve[name].dtype.kind
    assert same(view.colour("g", "r"), alert.colour("g", "r"))
    assert same(view.magnitudes("g").tolist(), alert.magnitudes("g").tolist())
    assert same(view.healpix_at(3), alert.healpix_at(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", SURVEYS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.data())
def test_columns_and_rows_are_what_an_alert_shows(name: str, drawn: st.DataObject) -> None:
    """Of two versions of a schema in one batch, each of which may lack fields of the other."""
    registry, values = drawn.draw(batches(name))
    known, decoder = survey(name), AlertDecoder(registry)
    found = decoder.columns(values, AlertTable.fields(CANONICAL, known), missing_ok=True)
    assert (list(found.rows), dict(found.faults)) == (list(range(len(values))), {})
    table = AlertTable(found.batch, known)
    assert len(table) == len(values)
    alerts = [known.view(decoder.decode(message).alert) for message in values]
    for row, alert in enumerate(alerts):
        check(table, row, alert)
    for mentioned in ([], CANONICAL, CANONICAL[::2], CANONICAL[1::2]):
        rows = PreparedRows(table, mentioned)
        for _ in range(2):
            for view, alert in zip(rows.rows(), alerts, strict=True):
                check_view(view, alert)
        history = PreparedHistory(table, mentioned, lambda row: alerts[row])
        for row, alert in enumerate(alerts):
            check_points(history.points_of(row), alert.history)


@pytest.mark.slow
@pytest.mark.parametrize("name", SURVEYS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.data())
def test_the_surveys_own_fields_are_those_of_the_alert(name: str, drawn: st.DataObject) -> None:
    registry, values = drawn.draw(batches(name))
    known, decoder = survey(name), AlertDecoder(registry)
    paths = AlertTable.fields(CANONICAL, known)
    table = AlertTable(decoder.columns(values, paths, missing_ok=True).batch, known)
    for row, message in enumerate(values):
        alert = decoder.decode(message).alert
        for view in (table.view(row), PreparedRows(table, CANONICAL).rows()[row]):
            for path in paths:
                assert same(at(view, path), at(alert, path)), path
            for seen, expected in zip(view.history, known.view(alert).history, strict=True):
                assert all(same(seen[field], expected[field]) for field in expected)


def test_what_is_closed_goes_without_the_garbage_collector() -> None:
    named = {"diaSourceId": [1] * 40, "diaSource.midpointMjdTai": [4.0] * 40}
    named |= {"prvDiaSources.midpointMjdTai": [[3.0, 2.0]] * 40, "prvDiaSources.psfFlux": [[1.0, 2.0]] * 40}
    table = AlertTable(pa.RecordBatch.from_pydict(named), survey("sim"))
    rows = PreparedRows(table, ["id", "history.flux"])
    for row in rows.rows():
        assert [point["psfFlux"] for point in row.history] == [point.flux for point in row.history]
        assert row["diaSource"]["midpointMjdTai"] == row.mjd_tai
    kept = [weakref.ref(one) for one in (table, rows, row.history[0])]
    gc.disable()
    try:
        rows.close()
        del rows, table, row
        assert [one() for one in kept] == [None] * 3
    finally:
        gc.enable()


def test_a_list_of_points_is_ones_own_and_the_points_are_everybodys() -> None:
    values = {"mjd_tai": [3.0, 1.0, 2.0], "psfFlux": [30.0, 10.0, 20.0]}
    named = {"diaSourceId": [1] * 40, "diaSource.midpointMjdTai": [4.0] * 40}
    named |= {"prvDiaSources.midpointMjdTai": [values["mjd_tai"]] * 40}
    named |= {"prvDiaSources.psfFlux": [values["psfFlux"]] * 40}
    rows = PreparedRows(AlertTable(pa.RecordBatch.from_pydict(named), survey("sim")), ["history.flux"])
    first = [row.history for row in rows.rows()]
    assert [[point.flux for point in some] for some in first] == [[10.0, 20.0, 30.0]] * 40
    row = rows.rows()[0]
    assert row.history is row.history
    for some in first:
        some.clear()
    again = [row.history for row in rows.rows()]
    assert [len(some) for some in again] == [3] * 40
    assert rows.rows(with_history=False)[7].history[0] is again[7][0]


def at(record: Any, path: str) -> Any:
    """Return what a path leads to, through records, which may be null, and lists of them."""
    first, _, rest = path.partition(".")
    found = None if record is None else record.get(first)
    if isinstance(found, list):
        return [at(one, rest) for one in found]
    return at(found, rest) if rest else found


def files(data: Path, name: str, tmp_path: Path) -> Iterator[bytes]:
    """Yield containers of real alerts."""
    if name == "lsst":
        yield (data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()
    if name == "elasticc":
        for path in sorted((data / "alerts/other/elasticc/samples").glob("*.avro")):
            yield path.read_bytes()
    for archive in sorted((data / "alerts/ztf").rglob("*.tar.gz")) if name == "ztf" else ():
        with tarfile.open(archive) as opened:
            opened.extractall(tmp_path / archive.name, filter="data")
    for path in sorted(tmp_path.rglob("*.avro"))[:40]:
        yield path.read_bytes()


@pytest.mark.data
@pytest.mark.parametrize("name", ["elasticc", "lsst", "ztf"])
def test_real_alerts_in_columns(data: Path, tmp_path: Path, name: str) -> None:
    known, count = survey(name), 0
    for file in files(data, name, tmp_path):
        records = list(wire.read_container(file))
        fields = AlertTable.fields([*CANONICAL, "stamps"], known, records[0].schema)
        table = AlertTable(Codec(records[0].schema).columns([one.body for one in records], fields), known)
        for row, one in enumerate(records):
            check(table, row, known.view(one.record))
            assert table.view(row).stamps == known.view(one.record).stamps
            count += 1
    assert count > 10


def test_fields_are_those_that_names_are_made_of() -> None:
    sim, ids = survey("sim"), {"diaSourceId", "visit", "diaObjectId", "ssObjectId"}
    always = AlertTable.fields([], sim)
    assert {path.rsplit(".", 1)[-1] for path in always} == ids
    more = AlertTable.fields(["magnitude", "history.flux", "diaSource.apFlux"], sim)
    assert more[len(always) :] == [
        "diaSource.psfFlux",
        "prvDiaSources.midpointMjdTai",
        "prvDiaSources.psfFlux",
        "prvDiaForcedSources.midpointMjdTai",
        "prvDiaForcedSources.psfFlux",
        "diaSource.apFlux",
    ]
    schema = {"type": "record", "name": "a", "fields": [{"name": "diaSourceId", "type": "long"}]}
    assert AlertTable.fields(["magnitude"], sim, schema) == ["diaSourceId"]


ONE = pa.record_batch(
    {"diaSource.diaSourceId": [7], "diaSource.ra": [1.0], "prvDiaSources.ra": [[1.0, None]]}
)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        (
            "magnitude",
            r"magnitude: no diaSource\.psfFlux among the fields that are read here: diaSource\.dia",
        ),
        ("history.flux", r"history\.flux: no prvDiaSources\.midpointMjdTai, prvDiaSources\.psfFlux"),
        ("light_curve.ra", r"prvDiaSources\.midpointMjdTai"),
        ("visit", r"visit: no diaSource\.visit"),
        ("diaSource.apFlux", r"diaSource\.apFlux: no"),
    ],
)
def test_what_is_not_in_the_batch_is_named(name: str, missing: str) -> None:
    table = AlertTable(ONE, survey("sim"))
    with pytest.raises(KeyError, match=missing):
        table[name]
    first, _, attribute = name.partition(".")
    with pytest.raises(KeyError, match="among the fields that are read here"):
        _ = table.view(0)["diaSource"][attribute] if first == "diaSource" else read(table.view(0), first)


def read(view: AlertView, name: str) -> Any:
    """Return an attribute, or what a method returns."""
    found = getattr(view, name)
    return found() if callable(found) else found


def test_a_column_is_arrays_with_what_is_null_marked() -> None:
    table = AlertTable(ONE, survey("sim"))
    column = table["prvDiaSources.ra"]
    assert column.offsets is not None
    assert (column.offsets.tolist(), column.null.tolist()) == ([0, 2], [False, True])
    assert table["prvDiaSources.ra"] is column
    assert (table["id"].values.dtype, table["id"].values.tolist()) == ("int64", [7])
    assert (table["ra"].values.tolist(), table["ra"].null.tolist()) == ([1.0], [False])
    view = table.view(0)
    assert (dict(view), view.id) == (
        {"diaSource": {"diaSourceId": 7, "ra": 1.0}, "prvDiaSources": [{"ra": 1.0}, {"ra": None}]},
        7,
    )
    with pytest.raises(KeyError, match="cutoutScience is not among the fields that are read here"):
        view["cutoutScience"]
    with pytest.raises(KeyError, match="stamps: no cutoutDifference, cutoutScience, cutoutTemplate among"):
        _ = view.stamps


def test_columns_of_any_type() -> None:
    batch = pa.record_batch(
        {
            "a.b": pa.array([True, None]),
            "a.n": pa.array([2**62 + 1, None]),
            "a.t": ["x", None],
            "a.raw": [b"x", None],
            "a.map": pa.array([{"k": 1}, None], pa.struct([("k", pa.int32())])),
            "a.lists": pa.array([[[1], [2, 3]], None]),
        }
    )
    table = AlertTable(batch.slice(0), survey("sim"))
    assert [table[name].items for name in ("a.b", "a.n", "a.t", "a.raw")] == [
        [True, None],
        [2**62 + 1, None],
        ["x", None],
        [b"x", None],
    ]
    assert table.view(0)["a"]["map"] == {"k": 1}
    assert (table["a.lists"].row(0), table["a.lists"].row(1)) == ([[1], [2, 3]], None)
    assert table.view(1)["a"] is None
    part = AlertTable(batch.slice(1), survey("sim"))
    assert (len(part), part["a.n"].items, part["a.lists"].row(0)) == (1, [None], None)


TIMES = [1.0, 2.0, 2.0 + 1e-15, 60_000.0, 1e300, -1.7e308, 1.7e308, -np.inf, np.inf, NAN]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(TIMES))))
def test_measurements_are_sorted_as_two_keys_do(found: list[tuple[int, float]]) -> None:
    """Some times differ by less than one key can tell, some spans are too long for it."""
    alerts, times = np.array([one for one, _ in found], int), np.array([moment for _, moment in found], float)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(alerts, minlength=4))])
    expected = np.lexsort((np.where(np.isnan(times), np.inf, times), alerts))
    assert by_time(times, alerts, offsets).tolist() == expected.tolist()


def test_a_question_mark_asks_whether_a_record_is_there() -> None:
    leaves = [{"name": "maybe", "type": ["null", "int"]}, {"name": "number", "type": "int"}]
    inner = {"type": "record", "name": "inner", "fields": leaves}
    schema = {
        "type": "record",
        "name": "alert",
        "fields": [
            {"name": "one", "type": ["null", inner]},
            {"name": "many", "type": ["null", {"type": "array", "items": "inner"}]},
        ],
    }
    fields = AlertTable.fields(["one?", "many?", "other?"], survey("sim"), schema)
    assert fields == ["one.number", "many.number"]
    codec, point = Codec(schema), {"maybe": None, "number": 1}
    alerts = [{"one": point, "many": [point, point]}, {"one": None, "many": None}]
    table = AlertTable(codec.columns([codec.encode(one) for one in alerts], fields), survey("sim"))
    assert (table["one?"].values.tolist(), table["one?"].offsets) == ([True, False], None)
    assert (table["many?"].row(0), table["many?"].row(1)) == ([True, True], None)
    with pytest.raises(KeyError, match="other: no other among"):
        table["other?"]
