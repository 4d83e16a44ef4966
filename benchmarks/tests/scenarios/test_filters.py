"""The scenario `filters`: its mixture of filters, and a small run with a real engine."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.environment.alert_pool import Alert, make_pool
from nightwire.benchmarks.environment.filter_mixture import CODE, COMPILED, MixedFilter, mixture
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Context, Size
from nightwire.benchmarks.scenarios.filters.burst import firsts
from nightwire.benchmarks.scenarios.filters.figures import FIGURES
from nightwire.benchmarks.scenarios.filters.language import Language
from nightwire.benchmarks.scenarios.filters.queries import judging
from nightwire.filters.language import (
    NotCompilable,
    compile_filter,
    compile_python,
    compile_sql,
    evaluate,
    objections,
)
from nightwire.schemas import SIM_ALERT_ID, AlertTable, Codec, sim_alert_schema, survey
from nightwire.schemas.wire import frame

COUNT = 500


@pytest.fixture(scope="module")
def pool() -> list[Alert]:
    """Return simulated alerts."""
    return make_pool(COUNT)


@pytest.fixture(scope="module")
def hundred(pool: list[Alert]) -> list[MixedFilter]:
    """Return a hundred filters."""
    return mixture(100, 20, pool)


def test_a_fifth_of_a_hundred_cannot_be_compiled(hundred: list[MixedFilter]) -> None:
    compiled, code = 0, []
    for one in hundred:
        if one.kind.sql:
            compile_sql(one.source, "sim")
            compiled += 1
            continue
        assert objections(one.source, "keep") == []
        try:
            compile_python(one.source)
            compiled += 1
        except NotCompilable:
            code.append(one.kind)
    assert compiled == 80
    assert set(code) == set(CODE)
    assert all(not kind.compiles for kind in code)


def test_filters_differ_and_each_owner_has_some(hundred: list[MixedFilter], pool: list[Alert]) -> None:
    thousand = mixture(1000, 50, pool)
    assert len({one.source for one in thousand}) > 900
    assert len({(one.owner, one.name) for one in thousand}) == 1000
    assert sum(not one.kind.compiles for one in thousand) == 50
    assert {one.kind for one in hundred} == {*COMPILED, *CODE}
    assert len({one.owner for one in hundred}) == 10


def test_each_filter_passes_its_share(hundred: list[MixedFilter], pool: list[Alert]) -> None:
    """By the compiled program where there is one; else by Python, alert by alert."""
    sim, codec = survey("sim"), Codec(sim_alert_schema())
    bodies = [codec.encode(alert) for alert in pool]
    for one in hundred[: len(COMPILED)] + hundred[-len(CODE) :]:
        if one.kind.compiles:
            program = compile_sql(one.source, "sim") if one.kind.sql else compile_python(one.source)
            names = [name for name in program.names if not name.endswith("?")]
            table = AlertTable(codec.columns(bodies, AlertTable.fields(names, sim, codec.schema)), sim)
            verdicts = evaluate(program, table)
            assert not verdicts.faults, one.name
            passed = int(verdicts.passed.sum())
        else:
            keep = compile_filter(one.source, "keep")
            passed = sum(bool(keep(sim.view(alert))) for alert in pool)
        assert 0.003 <= passed / COUNT <= 0.05, one.name
        assert passed == pytest.approx(one.share * COUNT, abs=2.5), one.name


def test_a_condition_is_also_a_function_that_passes_the_same(
    hundred: list[MixedFilter], pool: list[Alert]
) -> None:
    """What is measured beside the engine judges as the engine does."""
    sim, codec = survey("sim"), Codec(sim_alert_schema())
    bodies = [codec.encode(alert) for alert in pool]
    conditions = {one.kind: one for one in hundred if one.kind.sql}
    assert conditions
    for one in conditions.values():
        program = compile_sql(one.source, "sim")
        table = AlertTable(codec.columns(bodies, AlertTable.fields(program.names, sim, codec.schema)), sim)
        keep = compile_filter(one.function, "keep")
        assert [bool(keep(sim.view(alert))) for alert in pool] == evaluate(program, table).passed.tolist()


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
