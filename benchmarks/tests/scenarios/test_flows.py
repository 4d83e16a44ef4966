"""The scenario `flows`: chains and changes, tiny, on a real Kafka."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from nightwire.benchmarks import Context, Kind, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.sample import Sample
from nightwire.benchmarks.scenarios.flows import chains, changing
from nightwire.benchmarks.scenarios.flows.chains import KINDS, Chains
from nightwire.benchmarks.scenarios.flows.changing import Changing
from nightwire.benchmarks.scenarios.flows.scenario import FlowsScenario, figures_of

KNOWN = {figure.name for figure in figures_of()}


def test_chains_are_timed_beside_what_they_do_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "BATCH", 20)
    lengths: Mapping[str, Sequence[int]] = {"quick": (1, 4)}
    monkeypatch.setattr(chains, "LENGTHS", lengths)
    found = []
    for kind in KINDS:
        one = Chains(Context(tmp_path, Size(20, 1, 1.0)), kind)
        one.prepare()
        found += [one.run_once(which) for which in Kind if which not in one.at_most]
    assert all(figures.keys() <= KNOWN and min(figures.values()) > 0 for figures in found)
    samples = [Sample("chains", Kind.SUBJECT, 0, figures) for figures in found]
    [series] = FlowsScenario().outcome(samples).series
    assert [line.x for line in series.lines] == [[1, 4], [1, 4]]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("moves", [False, True])
def test_changes_are_timed_and_every_alert_counted(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: bool
) -> None:
    monkeypatch.setattr(changing, "CHANGES", {"quick": 2})
    monkeypatch.setattr(changing, "RESTARTS", 1)
    monkeypatch.setattr(changing, "POOL", 20)
    context = Context(tmp_path, Size(20, 1, 50.0), kafka)
    one = Changing(context, Cluster(context), moves=moves)
    found = [one.run_once(kind) for kind in (Kind if moves else [Kind.SUBJECT])]
    assert all(figures.keys() <= KNOWN for figures in found)
    assert {figures[f"{one.name}_{fate}"] for figures in found for fate in ("lost", "doubled")} == {0.0}
