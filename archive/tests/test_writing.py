"""Records become rows once, wherever a process dies; late schemas widen the table."""

import resource
import shutil
import subprocess
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from astropy.coordinates import Latitude, Longitude
from cdshealpix.nested import lonlat_to_healpix
from confluent_kafka import KafkaError, KafkaException
from pyarrow import parquet

from archive.tests.conftest import CODEC, NOON, Known, alert, packet, put, writer
from nightwire.archive import Archive, serve
from nightwire.archive.maintenance import Maintenance, Retention
from nightwire.archive.storage import FencedError, StorageError, Store, Table
from nightwire.archive.writing import ArchiveConsumer, Batching, survey_writer
from nightwire.archive.writing.columns import healpix, index_rows, nights
from nightwire.archive.writing.schedules import ConstantDrain
from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import Stop
from nightwire.schemas import SIM_ALERT_ID, Codec, survey
from nightwire.schemas.wire import frame

SOURCE = ("alerts.sim", 0)


def ids(folder: Path) -> list[str]:
    with Archive(folder) as found:
        return sorted(found.query("SELECT id FROM sim").column("id").to_pylist(), key=int)  # type: ignore[no-any-return]


@pytest.mark.parametrize("reached", ["packets", "index"])
def test_what_was_not_written_to_all_tables_is_caught_up(tmp_path: Path, reached: str) -> None:
    """The process dies after the packets, or after the index, and Kafka has forgotten."""
    tables = writer(tmp_path)
    put(tables, *(packet(n) for n in range(10)))
    late = [packet(n) for n in range(10, 30)]
    tables.packets.append_packets(late, {SOURCE: (10, 30)})
    if reached == "index":
        rows, _ = tables._rows(late)
        tables.index.append(index_rows(rows), {SOURCE: (10, 30)})
    assert writer(tmp_path).position(0) == 30
    assert ids(tmp_path) == [str(n) for n in range(1, 31)]
    with Archive(tmp_path) as found:
        assert len(found.cone(10.15, -20.25, 1.0)) == 30
        assert len(found.get(25)) == 1


def test_an_index_that_was_deleted_is_made_of_columns_in_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole alerts, with their stamps, are not read: here they are not even kept."""
    tables = writer(tmp_path)
    put(tables, *(packet(n) for n in range(7)), packet(7, b"junk"))
    put(tables, *(packet(n, partition=1) for n in range(3)))
    found = tables.index.refreshed()
    assert found is not None
    before = found.to_pyarrow_table().sort_by(
        [(name, "ascending") for name in ("key", "kind", "partition", "offset")]
    )
    shutil.rmtree(tmp_path / "sim" / "index")
    tables.packets.expire("2030-01-01", timedelta(hours=24))
    monkeypatch.setattr(survey_writer, "BATCH_ROWS", 3)
    again = writer(tmp_path)
    assert (again.position(0), again.position(1)) == (8, 3)
    made = again.index.refreshed()
    assert made is not None
    assert made.version() == 5  # made, three portions and the end of one partition, one of the other
    rows = made.to_pyarrow_table().sort_by(
        [(name, "ascending") for name in ("key", "kind", "partition", "offset")]
    )
    assert (rows.schema, rows.to_pylist()) == (before.schema, before.to_pylist())
    put(again, packet(8))
    with Archive(tmp_path) as archived:
        assert len(archived.get(9)) == 1


def test_a_table_that_goes_while_it_is_written_is_named_and_made_anew(tmp_path: Path) -> None:
    tables = writer(tmp_path)
    put(tables, packet(0))
    shutil.rmtree(tmp_path / "sim" / "index")
    with pytest.raises(StorageError, match="sim/index: its position is not known"):
        tables.position(0)
    put(tables, packet(1))
    with Archive(tmp_path) as found:
        assert [len(found.get(number)) for number in (1, 2)] == [1, 1]


def test_what_is_no_longer_kept_whole_is_not_caught_up(tmp_path: Path) -> None:
    """The process died after the packets, which were too old when it began again."""
    tables = writer(tmp_path)
    put(tables, *(packet(n) for n in range(10)))
    late = [packet(n) for n in range(10, 30)]
    tables.packets.append_packets(late, {SOURCE: (10, 30)})
    tables.packets.expire("2030-01-01", timedelta(hours=24))
    again = writer(tmp_path)
    assert again.position(0) == 30
    put(again, packet(30))
    assert ids(tmp_path) == [*(str(n) for n in range(1, 11)), "31"]


def test_two_who_archive_the_same_are_told(tmp_path: Path) -> None:
    one, other = writer(tmp_path), writer(tmp_path)
    put(one, packet(0))
    assert other.position(0) == 1
    put(one, packet(1))
    with pytest.raises(FencedError, match=r"alerts.sim/0 is at 2, not at 1"):
        put_at(other, 1, packet(1))
    assert ids(tmp_path) == ["1", "2"]


def put_at(tables: Any, begin: int, *records: Any) -> None:
    tables.packets.refreshed()
    tables.write(records, {SOURCE: begin})


def test_a_later_version_widens_the_table(tmp_path: Path) -> None:
    schema = CODEC.schema | {
        "fields": [*CODEC.schema["fields"], {"name": "verdict", "type": ["null", "string"], "default": None}]
    }
    later = Codec(schema)
    tables = writer(tmp_path, Known(v200001=later))
    put(tables, packet(0))
    value = frame(200_001, later.encode(alert(2) | {"verdict": "real"}))
    put(tables, packet(1, value), packet(2))
    with Archive(tmp_path) as found:
        rows = found.query("SELECT id, verdict, diaSource.psfFlux AS f FROM sim ORDER BY id").to_pylist()
        assert [row["verdict"] for row in rows] == [None, "real", None]
        assert [row["f"] for row in rows] == [3631.0] * 3
        (whole,) = found.packets(2)
        assert found.decode(whole).alert["verdict"] == "real"


def test_fields_that_differ_in_capitals_alone_get_columns_of_their_own(tmp_path: Path) -> None:
    """Delta and SQL know no capitals: such a table would take no rows."""

    def named(*names: str) -> Codec:
        more = [{"name": name, "type": ["null", "string"], "default": None} for name in names]
        return Codec(CODEC.schema | {"fields": [*CODEC.schema["fields"], *more]})

    fields = {1: ("Grade",), 2: ("grade", "Grade", "Flux", "flux"), 3: ("GRADE",)}
    codecs = {f"v20000{n}": named(*names) for n, names in fields.items()}
    tables = writer(tmp_path, Known(**codecs))
    for n, names in fields.items():
        value = codecs[f"v20000{n}"].encode(alert(n) | {name: name for name in names})
        put(tables, packet(n - 1, frame(200_000 + n, value)))
    found = tables.alerts.refreshed()
    assert found is not None
    for n, row in enumerate(found.to_pyarrow_table().sort_by("offset").to_pylist(), 1):
        assert {*fields[n]} <= {value for value in row.values() if isinstance(value, str)}
    assert ids(tmp_path) == ["1", "2", "3"]


def test_a_field_that_becomes_something_else_gets_a_column_beside(tmp_path: Path) -> None:
    def changed(kind: str) -> Codec:
        fields = [*CODEC.schema["fields"], {"name": "grade", "type": ["null", kind], "default": None}]
        source = next(one for one in fields if one["name"] == "diaSource")
        of_source = [*source["type"]["fields"], {"name": "note", "type": ["null", kind], "default": None}]
        inner = source | {"type": source["type"] | {"fields": of_source}}
        return Codec(CODEC.schema | {"fields": [inner if one is source else one for one in fields]})

    kinds = {"string": ("text", 1), "int": (7, 2), "float": (2.5, 3), "long": (9, 4)}
    codecs = {kind: changed(kind) for kind in kinds}
    tables = writer(tmp_path, Known(**{f"v20000{n}": codecs[kind] for kind, (_, n) in kinds.items()}))
    for kind, (value, n) in kinds.items():
        made = alert(n, note=value) | {"grade": value}
        put(tables, packet(n - 1, frame(200_000 + n, codecs[kind].encode(made))))
    with Archive(tmp_path) as found:
        sql = "SELECT grade, grade_int64, grade_double, diaSource.note_double FROM sim ORDER BY id"
        assert [tuple(row.values()) for row in found.query(sql).to_pylist()] == [
            ("text", None, None, None),
            (None, 7, None, None),
            (None, None, 2.5, 2.5),
            (None, 9, None, None),
        ]


def test_what_is_no_alert_is_kept_whole(tmp_path: Path) -> None:
    tables = writer(tmp_path)
    written = put(tables, packet(0), packet(1, b"junk"), packet(2, b"\0\0\0\0\1x"), packet(3))
    assert [*written.faults] == [1, 2]
    assert ids(tmp_path) == ["1", "4"]
    with Archive(tmp_path) as found:
        kept = [*found.tables("sim").read_packets(0, 0, 10)]
    assert kept == [packet(0), packet(1, b"junk"), packet(2, b"\0\0\0\0\1x"), packet(3)]
    assert [one.offset for one, _ in tables.unreadable(0, 0, 10)] == [1, 2]


def test_a_disk_that_fills_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    """A process of its own, in which no file may be longer than 20 kB."""
    put(writer(tmp_path), *(packet(n) for n in range(5)))
    code = f"""
import resource
from pathlib import Path
from archive.tests.conftest import put, packet, writer
from nightwire.archive.storage import StorageError
tables = writer(Path({str(tmp_path)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import os
try:
    put(tables, *(packet(n, packet(n).value + os.urandom(60_000)) for n in range(5, 9)))
except StorageError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True
    )
    assert "sim/packets: nothing was written" in done.stdout, done
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    again = writer(tmp_path)
    assert again.position(0) == 5
    put(again, *(packet(n) for n in range(5, 9)))
    assert ids(tmp_path) == [str(n) for n in range(1, 10)]


def test_pixels_are_those_of_others_and_nights_begin_at_noon() -> None:
    import pyarrow as pa

    rng = np.random.default_rng(1)
    ra, dec = rng.uniform(0, 360, 500), np.degrees(np.arcsin(rng.uniform(-1, 1, 500)))
    found = healpix(pa.array(ra), pa.array(dec)).to_pylist()
    assert found == lonlat_to_healpix(Longitude(ra, "deg"), Latitude(dec, "deg"), 29).tolist()
    assert healpix(pa.array([None, 1.0], pa.float64()), pa.array([1.0, 91.0])).to_pylist() == [-1, -1]
    times = pa.chunked_array([pa.array([NOON] * 3, pa.timestamp("ms", tz="UTC"))])
    days = nights(pa.array([61000.49, 61000.51, None]), times)
    assert [str(one) for one in days.to_pylist()] == ["2025-11-20", "2025-11-21", "2025-11-21"]


def test_columns_are_those_of_the_alert(tmp_path: Path) -> None:
    put(writer(tmp_path), packet(6))
    view = survey("sim").view(alert(7))
    with Archive(tmp_path) as found:
        (row,) = found.get(7, columns="*").to_pylist()
    for name in ("visit", "mjd_tai", "ra", "dec", "flux", "flux_error", "snr", "magnitude", "band"):
        expected = getattr(view, name)  # the schema has single precision
        assert row[name] == (expected if isinstance(expected, str) else pytest.approx(expected, 1e-6)), name
    assert (row["id"], row["object_id"], row["schema_id"]) == ("7", "1000002", SIM_ALERT_ID)
    assert row["diaSource"]["psfFluxErr"] == pytest.approx(363.1)


def test_small_files_become_one_and_the_old_ones_go(tmp_path: Path) -> None:
    tables = writer(tmp_path)
    for n in range(6):
        put(tables, packet(n))
    before = ids(tmp_path)
    maintenance = Maintenance(Store(tmp_path), Retention())
    assert maintenance.run(min_files=2, vacuum_after=timedelta(0)) > 0
    assert (maintenance.completed_at > 0, maintenance.errors) == (True, [])
    assert ids(tmp_path) == before
    (whole,) = (tmp_path / "sim" / "packets").rglob("*.parquet")
    groups = parquet.read_metadata(whole).to_dict()["row_groups"]
    columns = [one for group in groups for one in group["columns"] if one["path_in_schema"] == "value"]
    assert columns
    assert not any(one["statistics"] for one in columns), "a footer has no whole alerts"
    put(writer(tmp_path), packet(6))
    short = Retention(rows=timedelta(days=1), packets=timedelta(days=1))
    Maintenance(Store(tmp_path), short).run(vacuum_after=timedelta(0))
    kept = Table(Store(tmp_path), "sim", tables.packets.layout)
    assert kept.position(SOURCE) == 7
    alerts = Table(Store(tmp_path), "sim", tables.alerts.layout)
    assert [one.refreshed().to_pyarrow_table().num_rows for one in (kept, alerts)] == [0, 0]


class Unasked:
    """Kafka, which has no part in this; what is told to it is not kept."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_given, **_more: None


def test_what_cannot_be_written_at_a_rebalance_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, unasked = writer(tmp_path), Unasked()
    consumer: Any = ArchiveConsumer(
        unasked, unasked, lambda _survey: tables, unasked, ConstantDrain(), Batching()
    )
    consumer._positions[SOURCE] = None
    consumer._batch = [packet(number) for number in range(3)]

    def full(*_given: Any) -> Any:
        raise StorageError("no room")

    monkeypatch.setattr(tables, "write", full)
    consumer._write()
    assert consumer.unwritten == 3
    monkeypatch.undo()
    consumer._write()
    assert (consumer.unwritten, ids(tmp_path)) == (0, ["1", "2", "3"])


def test_a_panic_of_rust_is_told_and_ends_the_process() -> None:
    """No Exception: the archive would look alive, and archive nothing."""

    class Panicking:
        def run(self, _stop: Stop) -> None:
            raise BaseException("panicked")  # noqa: TRY002  (as pyo3's PanicException is one)

    ended = list[bool]()
    with serve.running(cast(Any, Panicking()), lambda: ended.append(True)) as failures:
        pass
    assert ([str(one) for one in failures], ended) == (["panicked"], [True])


def test_who_is_away_is_waited_for_and_who_refuses_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time with clients of their own, and what was counted goes on."""
    monkeypatch.setattr(serve, "RETRY_DELAY", 0.0)
    away = [StorageError("no store"), FencedError("overtaken"), DeliveryError("no account")]
    codes = KafkaError._ALL_BROKERS_DOWN, KafkaError.TOPIC_AUTHORIZATION_FAILED
    ends = iter([*away, *(KafkaException(KafkaError(code)) for code in codes)])

    class Ending(Unasked):
        accounts, expired, unwritten, newest = SimpleNamespace(archived=2, dead_lettered=1), 0, 5, 7.0

        def run(self, _stop: Stop) -> None:
            raise next(ends)

    restarting = serve.RestartingConsumer(lambda: nullcontext(cast(ArchiveConsumer, Ending())))
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        restarting.run(Stop())
    assert (next(ends, None), [*restarting.gauge_values]) == (None, [10, 5, 0, 5, 7.0])
