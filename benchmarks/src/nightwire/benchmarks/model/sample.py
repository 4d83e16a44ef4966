"""Part."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nightwire.benchmarks.model.scenario import Figures, Kind


@dataclass(frozen=True)
class ProcessUse:
    """What the processes of one name took: CPU time [s], and their largest resident memory [byte].

    Memory that processes share is counted in each of them. What went over TCP is known of those that say so.
    """

    name: str
    cpu_seconds: float
    peak_rss_bytes: int
    sent_bytes: int | None = None
    received_bytes: int | None = None


@dataclass(frozen=True)
class Use:
    """What a run took.

    Attributes:
        seconds: Wall time. [s]
        others: Share of all cores' time that was taken by processes that are not ours.
        processes: What ours took, by name.
    """

    seconds: float = 0.0
    others: float = 0.0
    processes: Sequence[ProcessUse] = ()


@dataclass(frozen=True)
class Sample:
    """One run.

    Attributes:
        experiment: Of which experiment.
        kind: Subject or baseline.
        pair: Number of its pair, from 0.
        figures: What it measured.
        use: What it took of the machine.
        tries: How often it was run; the least disturbed counts.
    """

    experiment: str
    kind: Kind
    pair: int
    figures: Figures
    use: Use = field(default_factory=Use)
    tries: int = 1


def figure_pairs(samples: Sequence[Sample], name: str) -> tuple[dict[int, float], dict[int, float]]:
    """Return the subject's and the baseline's values of figure *name*, by the number of the pair."""
    found: dict[Kind, dict[int, float]] = {kind: {} for kind in Kind}
    for sample in samples:
        if name in sample.figures:
            found[sample.kind][sample.pair] = sample.figures[name]
    return found[Kind.SUBJECT], found[Kind.BASELINE]
