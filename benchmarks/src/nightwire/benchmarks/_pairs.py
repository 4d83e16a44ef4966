"""Alternating pairs: subject and baseline in the same run, so that what drifts meets both."""

from collections.abc import Callable, Iterator, Sequence
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


def order(pairs: int) -> Iterator[tuple[int, Kind]]:
    """Yield pair number and kind of each run: subject, baseline, baseline, subject, subject, …"""
    for pair in range(pairs):
        for kind in FORTH if pair % 2 == 0 else reversed(FORTH):
            yield pair, kind


def run_pairs(
    experiment: Experiment, pairs: int, watch: Watch, done: Callable[[Sample], None]
) -> list[Sample]:
    """Prepare *experiment*, run it in *pairs* of alternating order, and tear it down."""
    samples: list[Sample] = []
    try:
        experiment.prepare()
        for pair, kind in order(pairs):
            with watch.window() as window:
                figures = experiment.run_once(kind)
            samples.append(Sample(experiment.name, kind, pair, figures, window.use))
            done(samples[-1])
    finally:
        experiment.tear_down()
    return samples


def figure_pairs(samples: Sequence[Sample], name: str) -> tuple[list[float], list[float]]:
    """Return the subject's and the baseline's values of figure *name*, each in the order of pairs."""
    found: dict[Kind, list[float]] = {}
    for kind in Kind:
        mine = [sample for sample in samples if sample.kind is kind and name in sample.figures]
        found[kind] = [sample.figures[name] for sample in sorted(mine, key=lambda sample: sample.pair)]
    return found[Kind.SUBJECT], found[Kind.BASELINE]
