"""Alternating pairs: subject and baseline in the same run, so that what drifts meets both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.benchmarks._scenario import Experiment, Figures, Kind
from nightwire.benchmarks._watch import Use, Watch

FORTH = (Kind.SUBJECT, Kind.BASELINE)


@dataclass(frozen=True)
class Sample:
    """One run.

    Attributes:
        experiment: Of which experiment.
        kind: Subject or baseline.
        pair: Number of its pair, from 0.
        figures: What it measured.
        use: What it took of the machine.
    """

    experiment: str
    kind: Kind
    pair: int
    figures: Figures
    use: Use = field(default_factory=Use)


def order(pairs: int, at_most: Mapping[Kind, int] = {}) -> Iterator[tuple[int, Kind]]:
    """Yield pair number and kind of each run: subject, baseline, baseline, subject, subject, …

    A kind in *at_most* is left out once it had so many runs.
    """
    for pair in range(pairs):
        for kind in FORTH if pair % 2 == 0 else reversed(FORTH):
            if pair < at_most.get(kind, pairs):
                yield pair, kind


def run_pairs(experiment: Experiment, pairs: int, watch: Watch) -> Iterator[Sample]:
    """Prepare *experiment*, yield each run of its *pairs* in alternating order, and tear it down."""
    try:
        experiment.prepare()
        for pair, kind in order(pairs, experiment.at_most):
            with watch.window() as window:
                figures = experiment.run_once(kind)
            yield Sample(experiment.name, kind, pair, figures, window.use)
    finally:
        experiment.tear_down()


def figure_pairs(samples: Sequence[Sample], name: str) -> tuple[dict[int, float], dict[int, float]]:
    """Return the subject's and the baseline's values of figure *name*, by the number of the pair."""
    found: dict[Kind, dict[int, float]] = {kind: {} for kind in Kind}
    for sample in samples:
        if name in sample.figures:
            found[sample.kind][sample.pair] = sample.figures[name]
    return found[Kind.SUBJECT], found[Kind.BASELINE]
