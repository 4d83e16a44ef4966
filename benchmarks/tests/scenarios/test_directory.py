"""The scenario `directory`: topics over HTTP, on a real Kafka and through a real link."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightwire.benchmarks import Context, Kind, RunError, Size
from nightwire.benchmarks.model.scenario import Experiment
from nightwire.benchmarks.scenarios.directory import mediator
from nightwire.benchmarks.scenarios.directory.http_worker import LENGTH, counting, values
from nightwire.benchmarks.scenarios.directory.link import LinkError, slow_link, why_not
from nightwire.benchmarks.scenarios.directory.mediator import WORKER, Link, Many, Reading, checked
from nightwire.benchmarks.scenarios.directory.scenario import figures_of
from nightwire.benchmarks.workers.pool import WorkerPool

TINY = {"small": 20, "stamps": 8}


def test_values_are_taken_apart() -> None:
    body = b"".join(LENGTH.pack(len(value)) + value for value in (b"one", b"", b"three"))
    assert [bytes(value) for value in values(body)] == [b"one", b"", b"three"]
    assert counting("values")(body) == 3
    assert counting("json")(b'[{"value": 1}, {"value": 2}]') == 2


def test_what_was_lost_or_doubled_fails_the_run() -> None:
    with pytest.raises(RunError, match="19 records came of 20"):
        checked({"records": 19}, 20)


def test_where_no_link_can_be_laid_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_not() == "there is no `ip`"
    with pytest.raises(LinkError), slow_link():
        pass


@pytest.mark.netns
def test_a_link_is_taken_away_again() -> None:
    with slow_link() as link:
        subprocess.run(link.on(0, ["true"]), check=True)
        (name,) = link.hosts
    assert name not in subprocess.run(["ip", "netns"], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def workers(kafka: str, tmp_path: Path) -> Iterator[WorkerPool]:
    one = WorkerPool(Context(tmp_path, Size(20, 1, 1.0), kafka), WORKER)
    yield one
    one.close()


@pytest.mark.kafka
@pytest.mark.netns
@pytest.mark.slow
@pytest.mark.parametrize(
    ("experiment", "kinds"),
    [
        (Reading, [*Kind]),
        pytest.param(Many, [Kind.SUBJECT], marks=pytest.mark.proof),
        pytest.param(Link, [Kind.SUBJECT], marks=pytest.mark.proof),
    ],
)
def test_a_tiny_run_gives_the_figures(
    workers: WorkerPool,
    tmp_path: Path,
    kafka: str,
    monkeypatch: pytest.MonkeyPatch,
    experiment: type[mediator.MediatorExperiment],
    kinds: list[Kind],
) -> None:
    monkeypatch.setattr(mediator, "TOPICS", TINY)
    monkeypatch.setattr(mediator, "EACH", 1)
    one: Experiment = experiment(Context(tmp_path, Size(20, 1, 1.0), kafka), workers)
    try:
        one.prepare()
        found = [one.run_once(kind) for kind in kinds]
    finally:
        one.tear_down()
    known = {figure.name for figure in figures_of()}
    assert all(figures and figures.keys() <= known and min(figures.values()) > 0 for figures in found)
    assert len({frozenset(figures) for figures in found}) == 1
