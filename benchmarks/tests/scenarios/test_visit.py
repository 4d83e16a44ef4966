"""The scenario `visit`: its parts, and a small run of it against a real Kafka."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.environment.alert_pool import ReadyMessage, make_pool, patched, ready_messages
from nightwire.benchmarks.environment.filter_engine import example_filters
from nightwire.benchmarks.environment.processes import Child, ChildError
from nightwire.benchmarks.model.drawing import distribution
from nightwire.benchmarks.scenarios.visit.scenario import aggregated
from nightwire.benchmarks.workers.alerts.due_times import percentiles
from nightwire.benchmarks.workers.alerts.feed import cycled
from nightwire.benchmarks.workers.alerts.reader import TWENTY_COLUMNS
from nightwire.schemas import Codec, sim_alert_schema, survey


def test_patched_alerts_have_ids_times_and_positions_of_their_own_and_share_the_rest() -> None:
    pool = make_pool(4)
    alerts = list(patched(pool, 8, visit=77, first=3))
    sources = [alert["diaSource"] for alert in alerts]
    for field in ("diaSourceId", "midpointMjdTai", "ra"):
        assert len({source[field] for source in sources}) == 8
    assert {source["visit"] for source in sources} == {77}
    assert all(alert["diaSourceId"] == alert["diaSource"]["diaSourceId"] for alert in alerts)
    assert alerts[0]["cutoutScience"] is pool[3]["cutoutScience"]
    assert pool[3]["diaSource"]["visit"] != 77


def test_patched_alerts_fit_the_schema_and_keep_their_sizes() -> None:
    pool = make_pool(6)
    codec = Codec(sim_alert_schema())
    for alert, ready in zip(patched(pool, 6, visit=77), ready_messages(pool), strict=True):
        assert abs(len(codec.encode(alert)) + 5 - len(ready.value)) < 40
        assert survey("sim").key(alert) == ready.key


def test_the_twenty_columns_are_there() -> None:
    codec = Codec(sim_alert_schema())
    batch = codec.columns([codec.encode(alert) for alert in make_pool(3)], TWENTY_COLUMNS)
    assert (batch.num_rows, batch.num_columns) == (3, 20)


def test_ready_made_messages_are_taken_in_turn() -> None:
    messages = [ReadyMessage(b"", bytes([number])) for number in range(3)]
    assert [one.value[0] for one in cycled(messages, 5, 2)] == [2, 0, 1, 2, 0]


def test_percentiles_are_in_milliseconds() -> None:
    figures = percentiles("latency", [number / 1000 for number in range(101)])
    assert figures["latency_p50_ms"] == pytest.approx(50)
    assert figures["latency_p99_ms"] == pytest.approx(99)
    assert figures["latency_max_ms"] == pytest.approx(100)
    assert aggregated("EndToEndLatency", [0.001, 0.003])["aggregatedEndToEndLatency50pct"] == 2.0


def test_a_distribution_rises_from_none_to_all() -> None:
    (line,) = distribution({"ours": [0.3, 0.1, 0.2]}).lines
    assert list(line.x) == sorted(line.x)
    assert (line.y[0], line.y[-1], line.x[0], line.x[-1]) == (0.0, 1.0, 100.0, 300.0)


def test_there_are_example_filters_with_names_that_filters_may_have(tmp_path: Path) -> None:
    assert len(example_filters()) == 3
    with pytest.raises(ChildError, match="holds 0 example filters"):
        example_filters(tmp_path)


def test_a_child_that_fails_says_how(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no luck')"]
    with Child(command, tmp_path / "log") as child, pytest.raises(ChildError, match="no luck"):
        child.await_health(1)


def test_a_child_and_its_children_are_ended(tmp_path: Path) -> None:
    code = "import subprocess,sys; p=subprocess.Popen(['sleep','600']); print(p.pid, flush=True); p.wait()"
    with Child([sys.executable, "-c", code], tmp_path / "log", talks=True) as child:
        assert child.process.stdout is not None
        grandchild = int(child.process.stdout.readline())
    assert child.process.poll() is not None
    psutil.wait_procs([psutil.Process(grandchild)] if psutil.pid_exists(grandchild) else [], timeout=10)
    gone = not psutil.pid_exists(grandchild) or psutil.Process(grandchild).status() == psutil.STATUS_ZOMBIE
    assert gone


def test_the_verbs_refuse_what_cannot_be() -> None:
    for words, said in (
        (["run"], "name scenarios, or --all; there are: "),
        (["run", "vist"], "no scenario 'vist'"),
        (["run", "visit", "--time-limit", "2"], "above the limit of 2 s"),
        (["run", "visit", "--alerts", "1000000000", "--time-limit", "1e12"], "GB"),
    ):
        done = CliRunner().invoke(bench, words)
        assert done.exit_code in (1, 2)
        assert said in done.output


def test_scenarios_are_listed() -> None:
    assert "visit" in CliRunner().invoke(bench, ["list"]).output


@pytest.mark.kafka
@pytest.mark.slow
def test_a_small_visit_runs_from_end_to_end(kafka: str, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = ["run", "visit", "--alerts", "50", "--pairs", "1", "--rate", "50", "--engine", "none"]
    done = CliRunner().invoke(bench, [*words, "--bootstrap", kafka, "--out", str(out)])
    assert done.exit_code == 0, done.output
    result = json.loads(out.read_text())
    found = {entry["name"]: entry for entry in result["results"]}
    for name in ("encode_produce_consume_decode_seconds", "share_of_raw_librdkafka", "latency_p99_ms"):
        assert found[name]["value"] > 0
        assert found[name]["ratio"] > 0
    assert result["size"]["alerts"] == 50
    assert result["messageSize"] > 100_000
    assert len(result["publishRate"]) == 1
    assert {"producer", "consumer"} <= {
        one["name"] for sample in result["samples"] for one in sample["processes"]
    }
    report = CliRunner().invoke(
        bench, ["report", "--results", str(tmp_path), "--out", str(tmp_path / "r.html")]
    )
    assert report.exit_code == 0, report.output
    assert "share_of_raw_librdkafka" in (tmp_path / "r.html").read_text()
    assert left_behind() == []


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.proof
def test_a_small_visit_runs_through_the_filter_engine(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = ["run", "visit", "--alerts", "50", "--pairs", "1", "--rate", "25", "--out", str(out)]
    done = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": None}).invoke(bench, words)
    assert done.exit_code == 0, done.output
    found = {entry["name"]: entry for entry in json.loads(out.read_text())["results"]}
    assert found["filter_pass_seconds"]["value"] > 0
    assert left_behind() == []


def left_behind() -> list[str]:
    """Return the command lines of what a benchmark did not end; waits a little for it."""
    deadline = time.monotonic() + 10
    while (left := _started_by_benchmarks()) and time.monotonic() < deadline:
        pass
    return left


def _started_by_benchmarks() -> list[str]:
    children = psutil.Process(os.getpid()).children(recursive=True)
    lines = [" ".join(child.as_dict(["cmdline"])["cmdline"] or ()) for child in children]
    return [line for line in lines if "nightwire.benchmarks.workers" in line or "nightwire-bench-" in line]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.proof), signal.SIGTERM])
def test_an_interrupted_run_ends_all_that_it_started(tmp_path: Path, number: signal.Signals) -> None:
    words = ["bench", "run", "visit", "--alerts", "50", "--pairs", "9", "--engine", "none"]
    environment = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP_SERVERS"}
    run = subprocess.Popen(
        [sys.executable, "-m", "nightwire.core.cli", *words, "--out", str(tmp_path / "result.json")],
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"TMPDIR": str(tmp_path)},
    )
    assert run.stderr is not None
    for line in run.stderr:
        if line.startswith("throughput 1 subject"):
            break
    started = psutil.Process(run.pid).children(recursive=True)
    assert any("kafka.Kafka" in child.cmdline() for child in started)
    run.send_signal(number)
    with run.stderr:
        run.stderr.read()
    assert run.wait(60) == 1
    _gone, alive = psutil.wait_procs(started, timeout=20)
    assert alive == []
    assert list(tmp_path.iterdir()) == []
