"""Faults: each is named, and none stops the archive or harms it."""

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from deltalake import DeltaTable

from archive.tests.conftest import NOON, Known, alert, message, packet, put, writer
from archive.tests.test_http_api import answering
from nightwire.archive import Archive, QueryError
from nightwire.archive.commands import archive
from nightwire.archive.maintenance import Maintenance, Retention
from nightwire.archive.storage import StorageError, Store, packet_of
from nightwire.schemas import Codec, sim_alert_schema
from nightwire.schemas.serving import KafkaAccess
from nightwire.schemas.wire import frame


def test_no_plan_of_a_question_writes_a_file(archived: Archive) -> None:
    path = Path(archived.store.url) / "sim" / "written.csv"
    for words in ("EXPLAIN ANALYZE", "EXPLAIN (ANALYZE)", "explain /* */ analyze", "EXPLAIN"):
        with pytest.raises(QueryError, match="nothing is written here"):
            archived.query(f"{words} COPY (SELECT 1) TO '{path}'")
    assert not path.exists()


def test_a_detection_without_a_time_is_no_point_of_a_light_curve(tmp_path: Path) -> None:
    put(writer(tmp_path), packet(2), packet(3, message(4, midpointMjdTai=float("nan"))), packet(4))
    with Archive(tmp_path) as found:
        assert len(found.object(10**6 + 1)) == 3
        assert found.light_curve(10**6 + 1).column("mjd_tai").to_pylist() == pytest.approx(
            [61000.6003, 61000.6005]
        )


def test_a_time_that_no_calendar_has_does_not_stop_the_archive(tmp_path: Path) -> None:
    said = Message("alerts.sim", 0, 0, b"k0", message(1), [], None, (TIMESTAMP_CREATE_TIME, NOON * 1000))
    put(writer(tmp_path), packet_of(said), packet(1))
    with Archive(tmp_path) as found:
        (row,) = found.query("SELECT timestamp FROM sim WHERE id = '1'").to_pylist()
        assert row["timestamp"].isoformat() == "9999-12-31T00:00:00+00:00"
        assert found.packets(1) == [packet_of(said)]
        assert found.tables("sim").first_since(0, NOON + 1) == 0
        assert found.tables("sim").first_since(0, NOON * 10**4) is None


def test_what_lies_in_the_index_alone_is_left_out_of_wide_answers(tmp_path: Path) -> None:
    """The nights went, and their month is still there; or the columns are being written."""
    tables = writer(tmp_path)
    put(tables, packet(0), packet(1, message(2, midpointMjdTai=61001.6)))
    tables.alerts.expire("2025-11-22", timedelta(hours=24))
    with Archive(tmp_path) as found:
        assert found.get(2, columns="*").column("id").to_pylist() == ["2"]
        assert len(found.get(1, columns=["id", "diaSource.psfFlux"])) == 0
        near = found.cone(10.015, -20.25, 1.0, columns=["id", "diaSource.psfFlux"])
        assert (near.column("id").to_pylist(), len(near.column("distance"))) == (["2"], 1)


def test_rows_that_others_rewrote_are_read_and_joined(tmp_path: Path) -> None:
    """A DELETE within a file writes the rest anew, with Arrow's string_view and binary_view."""
    tables = writer(tmp_path)
    put(tables, *(packet(n) for n in range(3)))
    for kind in ("packets", "index", "alerts"):
        DeltaTable(str(tmp_path / "sim" / kind)).delete("offset = 1")
    for n in range(3, 7):
        put(tables, packet(n))
    maintenance = Maintenance(Store(tmp_path), Retention())
    for joins in (True, False):
        with Archive(tmp_path) as found:
            assert found.cone(10, -20.25, 1).column("offset").to_pylist() == [0, 2, 3, 4, 5, 6]
            assert found.object(10**6 + 1).column("id").to_pylist() == ["3", "4", "5"]
            assert [*found.tables("sim").read_packets(0, 0, 9)] == [packet(n) for n in (0, 2, 3, 4, 5, 6)]
        assert (maintenance.run(min_files=2) > 0, maintenance.errors) == (joins, [])


def test_whole_alerts_that_are_gone_are_said_to_be_gone(tmp_path: Path) -> None:
    tables = writer(tmp_path)
    put(tables, packet(0))
    tables.packets.expire("2030-01-01", timedelta(hours=24))
    with Archive(tmp_path) as found, answering(found, KafkaAccess({})) as http:
        answer = http.get("/sim/alerts/1", params={"as": "avro"})
        assert (answer.status_code, "no longer kept" in answer.text) == (404, True), answer.text
    words = ["get", "1", "--archive", str(tmp_path), "--as", "avro"]
    shown = CliRunner().invoke(archive, words)
    assert (shown.exit_code, "no longer kept" in str(shown.exception)) == (1, True), shown.output
    near = CliRunner().invoke(archive, ["cone", "10", "-20.25", "1deg", "--archive", str(tmp_path)])
    assert near.exit_code == 0, near.output
    curve = CliRunner().invoke(archive, ["object", "--light-curve", *words[1:]])
    assert (curve.exit_code, "a light curve is no alert" in curve.output) == (2, True), curve.output


def test_a_table_with_a_file_that_is_gone_is_named_and_the_others_are_seen_to(tmp_path: Path) -> None:
    for number in range(3):
        put(tables := writer(tmp_path), packet(number))
    next((tmp_path / "sim" / "alerts").rglob("*.parquet")).unlink()
    maintenance = Maintenance(Store(tmp_path), Retention())
    assert maintenance.run(min_files=2) > 0
    assert (maintenance.completed_at, [why.split(": ")[0] for why in maintenance.errors]) == (
        0.0,
        [tables.alerts.uri],
    )
    assert maintenance.report.startswith(
        f"maintenance: no complete run yet\nmaintenance: {tables.alerts.uri}: StorageError: "
    )
    shown = CliRunner().invoke(archive, ["compact", "--archive", str(tmp_path)])
    assert (shown.exit_code, tables.alerts.uri in shown.output) == (1, True), shown.output
    with pytest.raises(StorageError, match=tables.alerts.uri):
        [*tables.alerts.read_range(0, 0, 3, 10)]
    (tmp_path / "sim" / "alerts" / "_delta_log" / f"{3:020d}.json").write_text("damaged")
    with pytest.raises(StorageError, match=tables.alerts.uri):
        tables.alerts.count(0, 0, 3)


def asked_without(folder: Path, kind: str, path: str, how: str) -> tuple[int, int]:
    """Return how a question is answered while a file of a table cannot be read, and afterwards."""
    file = next((folder / "sim" / kind).rglob("*.parquet"))
    whole = file.read_bytes()
    with answering(Archive(folder), KafkaAccess({})) as http:
        if how == "gone":
            file.unlink()
        else:
            file.write_bytes(b"PAR1" * 9)
        without = http.get(path)
        assert file.name in without.text
        file.write_bytes(whole)
        return without.status_code, http.get(path).status_code


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_who_asks_for_a_file_that_cannot_be_read_is_told_so(tmp_path: Path, how: str) -> None:
    """Until it is back: by name, without a traceback, and never that he asked too much."""
    put(writer(tmp_path), packet(0))
    for kind, path in {
        "packets": "/sim/records/0?until=1",
        "index": "/sim/objects/1000000",
        "alerts": "/query?sql=SELECT sum(snr) FROM sim",
    }.items():
        assert asked_without(tmp_path, kind, path, how) == (503, 200)
    schema = next((tmp_path / "schemas").iterdir())
    schema.write_text("")
    with pytest.raises(StorageError, match=f"{schema} is damaged"):
        put(writer(tmp_path), packet(2))


def test_a_time_beyond_all_calendars_is_no_value_and_ends_nothing(tmp_path: Path) -> None:
    when = {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    schema = sim_alert_schema()
    codec = Codec(schema | {"fields": [*schema["fields"], when]})
    values = [frame(9, codec.encode(alert(n) | {"when": time})) for n, time in ((1, 2**62), (2, NOON))]
    put(writer(tmp_path, Known(_9=codec)), *(packet(at, value) for at, value in enumerate(values)))
    with Archive(tmp_path) as found:
        rows = found.query('SELECT epoch_ms("when") AS ms FROM sim ORDER BY id').to_pylist()
        assert [row["ms"] for row in rows] == [None, NOON]


@pytest.mark.parametrize(
    ("sql", "form"), [("SELECT [1] AS l", "csv"), ("SELECT TIMESTAMP 'infinity' AS t", "json")]
)
def test_a_form_that_cannot_hold_an_answer_is_refused(archived: Archive, sql: str, form: str) -> None:
    with answering(archived, KafkaAccess({})) as http:
        answer = http.get("/query", params={"sql": sql, "as": form})
    assert (answer.status_code, form in answer.text) == (400, True), answer.text
