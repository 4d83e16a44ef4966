"""The scenario `portal`, tiny, on a real Kafka."""

from pathlib import Path

import pytest

from nightwire.benchmarks import Context, Kind, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.scenarios.portal import scenario
from nightwire.benchmarks.scenarios.portal.scenario import Watched, figures_of

KNOWN = {figure.name for figure in figures_of()}


@pytest.mark.kafka
@pytest.mark.slow
def test_delays_are_measured_beside_viewers_and_without(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario, "VIEWERS", 3)
    monkeypatch.setattr(scenario, "POOL", 20)
    context = Context(tmp_path, Size(100, 1, 20.0), kafka)
    cluster = Cluster(context)
    one = Watched(context, cluster)
    one.prepare()
    watched, alone = (one.run_once(kind) for kind in (Kind.SUBJECT, Kind.BASELINE))
    cluster.close()
    assert watched.keys() == KNOWN
    assert alone.keys() == {name for name in KNOWN if name.startswith("live_")}
    assert min(watched.values()) > 0
