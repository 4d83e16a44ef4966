"""The scenario `archive`: questions and disturbances, tiny, on a real Kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nightwire.archive import Archive
from nightwire.benchmarks import Context, Kind, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.scenarios.archive import disturbing
from nightwire.benchmarks.scenarios.archive.asking import Asking
from nightwire.benchmarks.scenarios.archive.disturbing import Disturbing
from nightwire.benchmarks.scenarios.archive.scenario import figures_of
from nightwire.benchmarks.scenarios.archive.simulated import NIGHTS, PER_OBJECT, fill

KNOWN = {figure.name for figure in figures_of()}


def test_simulated_rows_are_those_of_an_archive(tmp_path: Path) -> None:
    fill(tmp_path, 2000)
    with Archive(tmp_path) as found:
        sql = "SELECT count(*) AS n, count(DISTINCT night) AS nights, count(DISTINCT object_id) AS o FROM sim"
        assert found.query(sql).to_pylist() == [{"n": 2000, "nights": NIGHTS, "o": 2000 // PER_OBJECT}]


def test_questions_are_timed_beside_scans(tmp_path: Path) -> None:
    one = Asking(Context(tmp_path, Size(2000, 1, 1.0)))
    one.prepare()
    try:
        found = [one.run_once(kind) for kind in Kind]
    finally:
        one.tear_down()
    assert all(figures.keys() <= KNOWN and min(figures.values()) > 0 for figures in found)


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[Cluster]:
    one = Cluster(Context(tmp_path, Size(20, 1, 20.0), kafka))
    yield one
    one.close()


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_delays_are_measured_with_an_archive_and_without(
    cluster: Cluster, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disturbing, "VISITS", 1)
    monkeypatch.setattr(disturbing, "POOL", 20)
    one = Disturbing(Context(tmp_path, Size(20, 1, 20.0), kafka), cluster, "state")
    one.prepare()
    found = [one.run_once(kind) for kind in Kind]
    assert all(figures.keys() <= KNOWN and min(figures.values()) > 0 for figures in found)
    assert found[0].keys() == found[1].keys()
