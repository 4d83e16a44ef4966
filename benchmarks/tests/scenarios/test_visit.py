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
