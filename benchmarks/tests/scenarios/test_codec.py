"""The scenario `codec`: its alerts, and a small run of it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.scenarios.codec.scenario import (
    CodecEngine,
    FastavroCodec,
    batches,
    find_alerts,
    other_version,
)
from nightwire.benchmarks.workers.alerts.reader import TWENTY_COLUMNS
from nightwire.schemas import Codec, engines, sim_alert_schema


def test_without_real_data_the_alerts_are_simulated(tmp_path: Path) -> None:
    alerts = find_alerts(tmp_path)
    assert alerts.what == "32 simulated alerts"
    assert Codec(alerts.schema).encode(alerts.values[0]) == alerts.bodies[0]


@pytest.mark.data
def test_with_real_data_the_alerts_are_real(data: Path) -> None:
    alerts = find_alerts(data)
    assert alerts.what == "32 real Rubin alerts"
    assert FastavroCodec(alerts.schema).decode(alerts.bodies[0]) == alerts.values[0]


def test_fastavros_columns_are_ours() -> None:
    schema, (alert,) = sim_alert_schema(), make_pool(1)
    body = Codec(schema).encode(alert)
    theirs, ours = (
        FastavroCodec(schema).columns([body], TWENTY_COLUMNS),
        Codec(schema).columns([body], TWENTY_COLUMNS),
    )
    assert theirs.to_pylist() == ours.to_pylist()


def test_the_other_version_is_renamed_widened_and_without_nulls() -> None:
    schema, (alert,) = sim_alert_schema(), make_pool(1)
    body = Codec(schema).encode(alert)
    source = Codec(schema, reader=other_version(schema)).decode(body)["diaSource"]
    assert source["flux"] == pytest.approx(alert["diaSource"]["psfFlux"])
    assert "psfFlux" not in source
    assert source["note"] is None
    assert isinstance(source["apFlux"], float)


def test_batches_are_what_a_consumer_takes() -> None:
    assert [len(batch) for batch in batches([b""] * 600)] == [256, 256, 88]


def test_an_engine_that_disagrees_with_fastavro_is_not_measured(tmp_path: Path) -> None:
    alerts = find_alerts(tmp_path)
    engine = CodecEngine("python", alerts, 2)
    engine._bodies = [alerts.bodies[1], alerts.bodies[0]]
    with pytest.raises(AssertionError, match="do not agree"):
        engine.prepare()


@pytest.mark.slow
def test_a_small_run_compares_every_engine(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    done = CliRunner().invoke(bench, ["run", "codec", "--alerts", "4", "--pairs", "1", "--out", str(out)])
    assert done.exit_code == 0, done.output
    found = {entry["name"]: entry for entry in json.loads(out.read_text())["results"]}
    for engine in engines():
        for what in ("encode", "decode", "columns", "morph_decode"):
            assert found[f"{engine}_{what}_us"]["ratio"] > 0
