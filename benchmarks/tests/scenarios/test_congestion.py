"""The scenario `congestion`, tiny, on a real Kafka."""

from pathlib import Path

import pytest

from nightwire.benchmarks import Context, Kind, RunError, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.scenarios.congestion import cut, drop_oldest
from nightwire.benchmarks.scenarios.congestion.scenario import CongestionScenario

KNOWN = {figure.name for figure in CongestionScenario.figures}


@pytest.fixture
def context(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    for name, value in {"POOL": 5, "BEFORE": 1.0, "AFTER": 0.5, "SILENCE": 1.0, "LIMIT": 1.0}.items():
        monkeypatch.setattr(cut, name, value)
    monkeypatch.setattr(drop_oldest, "LENGTH", 3)
    return Context(tmp_path, Size(20, 1, 5.0), kafka)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_ages_are_measured_with_the_ladder_and_without(context: Context) -> None:
    one = cut.CutLink(context, Cluster(context))
    one.prepare()
    less, plain = (one.run_once(kind) for kind in (Kind.SUBJECT, Kind.BASELINE))
    dropped = cut.DroppedOldest(context, Cluster(context)).run_once(Kind.SUBJECT)
    assert less.keys() == plain.keys()
    assert {*less, *dropped} == KNOWN
    assert 0 < dropped["dropped_share"] < 1


def test_a_cut_in_which_nothing_came_is_a_failed_run() -> None:
    with pytest.raises(RunError, match="nothing came while the link was cut"):
        cut.Delivered().age(0.5)
