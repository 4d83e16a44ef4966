"""Whole alerts in the sandbox: decoded as far as is asked, the same as if decoded at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filters.tests.helpers.sandboxed import columns, encoded
from nightwire.filters.sandbox.shared_batch import BatchSchemas, LazyAlert, TableValues, WholeAlertView
from nightwire.schemas import (
    SIM_ALERT_ID,
    AlertTable,
    Codec,
    UnknownSchemaError,
    sim_alert_schema,
    survey,
    wire,
)

CANONICAL = (
    "id", "object_id", "solar_system_id", "visit", "ra", "dec", "galactic_longitude", "galactic_latitude",
    "healpix", "mjd_tai", "band", "flux", "flux_error", "snr", "magnitude", "history", "stamps",
)  # fmt: skip


@pytest.fixture(scope="module")
def bodies(make_alert: Callable[..., dict[str, Any]]) -> list[bytes]:
    """Return the Avro bodies of three alerts."""
    return encoded(make_alert, 3)


def message(body: bytes) -> memoryview:
    """Return a message as it lies in a batch: of Arrow's buffers, whose bytes are signed."""
    return memoryview(pa.py_buffer(wire.frame(SIM_ALERT_ID, body)))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["python", pytest.param("native", marks=pytest.mark.native)])
def test_a_large_id_is_read_by_each_engine(
    make_alert: Callable[..., dict[str, Any]], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTWIRE_CODEC", engine)
    monkeypatch.setattr("nightwire.filters.sandbox.shared_batch.CODECS", {})
    body = Codec(sim_alert_schema()).encode(make_alert((1 << 60) + 200, -1.5))
    alert = BatchSchemas({SIM_ALERT_ID: sim_alert_schema()}).alert(message(body))
    assert dict(alert) == Codec(sim_alert_schema()).decode(body)


def test_an_alert_is_what_decoding_gives(bodies: list[bytes]) -> None:
    known = BatchSchemas({SIM_ALERT_ID: sim_alert_schema()})
    for body in bodies:
        alert = known.alert(message(body))
        assert isinstance(alert, LazyAlert)
        assert dict(alert) == Codec(sim_alert_schema()).decode(body)
        assert len(alert) == len(dict(alert))


def test_a_field_that_there_is_not_is_a_key_error(bodies: list[bytes]) -> None:
    alert = BatchSchemas({SIM_ALERT_ID: sim_alert_schema()}).alert(message(bodies[0]))
    with pytest.raises(KeyError, match="nothing"):
        alert["nothing"]
    assert alert.get("nothing") is None


def test_a_schema_that_did_not_come_along_is_named() -> None:
    with pytest.raises(UnknownSchemaError, match="999"):
        BatchSchemas({}).alert(memoryview(wire.frame(999, b"")))


@pytest.mark.parametrize("with_columns", [True, False])
def test_canonical_values_are_the_same_from_columns_and_from_the_message(
    bodies: list[bytes], with_columns: bool
) -> None:
    sim, known = survey("sim"), BatchSchemas({SIM_ALERT_ID: sim_alert_schema()})
    table_values = TableValues(AlertTable(columns(bodies), sim) if with_columns else None)
    for row, body in enumerate(bodies):
        plain = sim.view(Codec(sim_alert_schema()).decode(body))
        view = WholeAlertView(known.alert(message(body)), sim, table_values, row)
        assert {name: getattr(view, name) for name in CANONICAL} == {
            name: getattr(plain, name) for name in CANONICAL
        }
        assert {name: values.tolist() for name, values in view.light_curve().items()} == {
            name: values.tolist() for name, values in plain.light_curve().items()
        }


@pytest.mark.data
def test_real_alerts_have_the_same_values_whole_and_by_columns(data: Path) -> None:
    records = list(wire.read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    lsst, schema = survey("lsst"), records[0].schema
    codec, known = Codec(schema), BatchSchemas({1100: schema})
    bodies = [codec.encode(one.record) for one in records]
    wanted = AlertTable.fields([*CANONICAL[:-2], "light_curve"], lsst, schema)
    table_values = TableValues(AlertTable(codec.columns(bodies, wanted), lsst))
    for row, (one, body) in enumerate(zip(records, bodies, strict=True)):
        plain = lsst.view(one.record)
        view = WholeAlertView(known.alert(memoryview(wire.frame(1100, body))), lsst, table_values, row)
        assert [getattr(view, name) for name in CANONICAL[:-2]] == [
            getattr(plain, name) for name in CANONICAL[:-2]
        ]
        assert repr(view.light_curve()) == repr(plain.light_curve())
        assert [dict(point) for point in view.history] == [dict(point) for point in plain.history]
        assert view.stamps == plain.stamps
