"""The scenario `filters`: its mixture of filters, and a small run with a real engine."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from benchmarks.tests.conftest import COUNT
from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.environment.alert_pool import Alert
from nightwire.benchmarks.environment.filter_mixture import MixedFilter
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Context, Size
from nightwire.benchmarks.scenarios.filters.burst import firsts
from nightwire.benchmarks.scenarios.filters.language import Language
from nightwire.benchmarks.scenarios.filters.queries import judging
from nightwire.benchmarks.scenarios.filters.scenario import FIGURES
from nightwire.filters.language import (
    compile_filter,
)
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, survey
from nightwire.schemas.wire import frame


@pytest.mark.slow
def test_functions_and_queries_let_the_same_alerts_through(
    hundred: list[MixedFilter], pool: list[Alert]
) -> None:
    codec, sim = Codec(sim_alert_schema()), survey("sim")
    values = [frame(SIM_ALERT_ID, codec.encode(alert)) for alert in pool]
    batch = pa.RecordBatch.from_pydict({"key": [b""] * COUNT, "value": values})
    for one in hundred[:2]:
        keep = compile_filter(one.function, "keep")
        (passed,) = judging(one.function)(iter([batch]))
        wanted = [value for value, alert in zip(values, pool, strict=True) if keep(sim.view(alert))]
        assert passed["value"].to_pylist() == wanted
        assert wanted


@pytest.mark.slow
def test_the_language_is_timed_beside_python(pool: list[Alert], tmp_path: Path) -> None:
    experiment = Language(Context(tmp_path, Size(COUNT, 1, 1.0)), pool)
    experiment.prepare()
    for kind in Kind:
        figures = experiment.run_once(kind)
        assert all(value > 0 for value in figures.values())
        assert {figure.name for figure in FIGURES} >= figures.keys()


def test_an_owner_has_his_first_alerts_when_the_last_of_them_is_there() -> None:
    arrivals = [("a", 3.0), ("a", 1.0), ("b", 7.0), ("a", 2.0), ("a", 9.0)]
    assert firsts(arrivals, 3) == {"a": 3.0, "b": 7.0}
    assert firsts([], 3) == {}


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.timeout(400)
def test_a_small_visit_goes_through_a_hundred_filters_and_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = ["run", "filters", "--alerts", "300", "--pairs", "1", "--out", str(out)]
    done = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": None}).invoke(bench, words)
    assert done.exit_code == 0, done.output
    found = {entry["name"]: entry for entry in json.loads(out.read_text())["results"]}
    assert found["pass_seconds_100_filters"]["ratio"] > 0
    mean, p99 = (found[f"first20_{what}_seconds_100_filters"]["value"] for what in ("mean", "p99"))
    assert p99 >= mean > 0
    assert found["copies_sent_100_filters"]["value"] > 100
    assert found["disturbed_first20_mean_seconds"]["ratio"] > 0
    assert found["filter_latency_p50_ms"]["value"] > 0
