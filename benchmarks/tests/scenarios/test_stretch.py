"""The scenario `stretch`: its bounds, and a small run of it against a real Kafka."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.scenarios.stretch.scenario import bounds


def test_a_topic_keeps_less_than_a_visit_and_rolls_often() -> None:
    settings = bounds(5_000_000_000)
    assert 4 * int(settings["retention.bytes"]) == 4_000_000_000
    assert 64 * 4 * int(settings["segment.bytes"]) == pytest.approx(5_000_000_000, rel=1e-6)


def test_segments_have_a_smallest_size() -> None:
    assert bounds(1000)["segment.bytes"] == str(1 << 20)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_three_small_visits_go_through_and_are_measured(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = ["run", "stretch", "--alerts", "60", "--pairs", "1", "--out", str(out)]
    done = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": None}).invoke(bench, words)
    assert done.exit_code == 0, done.output
    found = {entry["name"]: entry for entry in json.loads(out.read_text())["results"]}
    assert found["three_visits_seconds"]["value"] > found["three_visits_slowest_seconds"]["value"] > 0
    assert found["topic_disk_visits"]["value"] > 0
    assert {"producer_rss_growth", "consumer_rss_growth"} <= found.keys()
