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
from nightwire.benchmarks.model.sample import Kind, ProcessUse, Sample, Use
from nightwire.benchmarks.model.scenario import Context, Size
from nightwire.benchmarks.scenarios.filters.language import Language
from nightwire.benchmarks.scenarios.filters.matching import Matching
from nightwire.benchmarks.scenarios.filters.neighbours import firsts
from nightwire.benchmarks.scenarios.filters.phases import counted, phase_figures, phase_tables, spent
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


@pytest.mark.slow
def test_matching_is_timed_beside_a_tree(tmp_path: Path) -> None:
    experiment = Matching(Context(tmp_path, Size(COUNT, 1, 1.0)), 20_000, "million")
    experiment.prepare()
    for kind in Kind:
        figures = experiment.run_once(kind)
        assert all(value > 0 for value in figures.values())
        assert {figure.name for figure in FIGURES} >= figures.keys()


PAGE = """\
# TYPE nightwire_filters_phase_seconds summary
nightwire_filters_phase_seconds_count{{phase="judge"}} {batches}
nightwire_filters_phase_seconds_sum{{phase="judge"}} {judge}
nightwire_filters_phase_seconds_sum{{phase="send"}} 0.5
nightwire_filters_phase_seconds_sum{{phase="judge",lane="slow"}} {judge}
# TYPE nightwire_filters_spark_phase_seconds summary
nightwire_filters_spark_phase_seconds_sum{{phase="addBatch"}} {whole}
# TYPE nightwire_filters_cpu_seconds counter
nightwire_filters_cpu_seconds_total{{filter="a/b",way="rows"}} {judge}
nightwire_filters_cpu_seconds_total{{filter="a/c",way="rows"}} {judge}
nightwire_filters_cpu_seconds_total{{filter="a/slow",way="rows"}} 7
"""


def test_the_parts_of_a_pass_are_what_was_counted_in_between() -> None:
    before = counted(PAGE.format(batches=1, judge=1.0, whole=2.0), {"a/slow"})
    found = spent(before, counted(PAGE.format(batches=3, judge=2.5, whole=4.0), {"a/slow"}))
    assert found["judge"] == found["judge (slow)"] == 1.5
    assert found["send"] == 0.0
    assert found["CPU rows"] == 3.0
    assert found["Spark's rest"] == pytest.approx(0.5)


def test_the_table_of_parts_has_a_column_for_each_experiment_and_processes_last() -> None:
    use = Use(3.0, 0.0, [ProcessUse("kafka", 2.5, 1)])
    figures = {"pass_seconds_100_filters": 4.0, "quick_lane_seconds_100_filters": 3.0} | phase_figures(
        {"send": 1.0, "new": 0.5}
    )
    runs = [
        Sample(name, Kind.SUBJECT, 0, figures, use) for name in ("pass-1-one-9-alerts", "pass-2-two-9-alerts")
    ]
    (table,) = phase_tables(
        [*runs, Sample(runs[0].experiment, Kind.BASELINE, 0, {"pass_seconds_100_filters": 9.0})]
    )
    assert table.head[1:] == ["1 one 9", "2 two 9"]
    assert [row[1] for row in table.rows] == ["4.00 s", "3.00 s", "1.00 s", "0.50 s", "2.50 s"]
    assert table.rows[-1][0] == "CPU time: kafka"
    assert phase_tables([]) == []


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
    for whose in ("quick", "slow"):
        mean, p99 = (found[f"{whose}_first20_{what}_seconds_102_habits"]["value"] for what in ("mean", "p99"))
        assert p99 >= mean > 0
    quick, every = (found[f"{what}_seconds_102_habits"]["value"] for what in ("quick_lane", "pass"))
    assert every >= quick > 0
    for name in ("copies_per_second_100_filters", "disturbed_first20_mean_seconds_100_filters"):
        assert found[name]["ratio"] > 0
    assert found["quick_latency_p50_ms"]["value"] > 0
