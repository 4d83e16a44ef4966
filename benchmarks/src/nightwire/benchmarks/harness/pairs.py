"""Alternating pairs: subject and baseline in the same run, so that what drifts meets both."""

from collections.abc import Container, Generator, Iterator, Mapping

from nightwire.benchmarks import Experiment, Figures, Kind, Sample
from nightwire.benchmarks.model.sample import Use
from nightwire.benchmarks.resources.cpu import DISTURBED
from nightwire.benchmarks.resources.monitor import ResourceMonitor

FORTH = (Kind.SUBJECT, Kind.BASELINE)


def order(pairs: int, at_most: Mapping[Kind, int] = {}) -> Iterator[tuple[int, Kind]]:
    """Yield pair number and kind of each run: subject, baseline, baseline, subject, subject, …

    A kind in *at_most* is left out once it had so many runs.
    """
    for pair in range(pairs):
        for kind in FORTH if pair % 2 == 0 else reversed(FORTH):
            if pair < at_most.get(kind, pairs):
                yield pair, kind


def run_pairs(
    experiment: Experiment,
    pairs: int,
    monitor: ResourceMonitor,
    *,
    repeats: int = 0,
    known: Container[int] = (),
) -> Generator[Sample]:
    """Prepare *experiment*, yield each run of its *pairs* in alternating order, and tear it down.

    Args:
        experiment: What is run.
        pairs: How often.
        monitor: Measures what it took.
        repeats: How often a run is repeated at most, while others disturb it.
        known: Pairs that are left out.
    """
    try:
        experiment.prepare()
        for pair, kind in order(pairs, experiment.at_most):
            if pair not in known:
                yield _quietest(experiment, pair, kind, monitor, repeats)
    finally:
        experiment.tear_down()


def _quietest(
    experiment: Experiment, pair: int, kind: Kind, monitor: ResourceMonitor, repeats: int
) -> Sample:
    """Run until others do not disturb, or *repeats* times more; return the calmest run."""
    tries: list[tuple[Figures, Use]] = []
    while len(tries) <= repeats and all(use.others > DISTURBED for _figures, use in tries):
        with monitor.window() as window:
            figures = experiment.run_once(kind)
        tries.append((figures, window.use))
    figures, use = min(tries, key=lambda one: one[1].others)
    return Sample(experiment.name, kind, pair, figures, use, len(tries))
