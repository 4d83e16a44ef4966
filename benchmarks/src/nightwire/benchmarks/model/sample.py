"""What one run measured, and what it took of the machine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

Figures = dict[str, float]
"""What one run measured, by name.  A baseline's figures carry the names of the subject's."""


class Kind(StrEnum):
    """Whose run it is: ours, or that of what ours is compared with."""

    SUBJECT = "subject"
    BASELINE = "baseline"


@dataclass(frozen=True)
class TcpTraffic:
    """What was sent and acknowledged, and what was received. [byte]"""

    sent: int = 0
    received: int = 0

    def __add__(self, other: "TcpTraffic") -> "TcpTraffic":
        """Return both together."""
        return TcpTraffic(self.sent + other.sent, self.received + other.received)

    @property
    def mirrored(self) -> "TcpTraffic":
        """The same, as the other side has it."""
        return TcpTraffic(self.received, self.sent)


@dataclass(frozen=True)
class ProcessUse:
    """CPU time [s] and largest resident memory [byte] of the processes of one name.

    Memory that processes share is counted in each of them. What went over TCP is known only of
    processes that report it.
    """

    name: str
    cpu_seconds: float
    peak_rss_bytes: int
    sent_bytes: int | None = None
    received_bytes: int | None = None


@dataclass(frozen=True)
class Use:
    """What a run took of the machine.

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
        experiment: Name of its experiment.
        kind: Subject or baseline.
        pair: Number of its pair, from 0.
        figures: What it measured.
        use: What it took of the machine.
        tries: How often it was run; the least disturbed run counts.
    """

    experiment: str
    kind: Kind
    pair: int
    figures: Figures
    use: Use = field(default_factory=Use)
    tries: int = 1


def values_of(samples: Sequence[Sample], name: str, kind: Kind) -> dict[int, float]:
    """Return the values of figure *name* in the runs of *kind*, by the number of the pair."""
    return {one.pair: one.figures[name] for one in samples if one.kind is kind and name in one.figures}


def figure_pairs(samples: Sequence[Sample], name: str) -> tuple[dict[int, float], dict[int, float]]:
    """Return the subject's and the baseline's values of figure *name*, by pair."""
    return values_of(samples, name, Kind.SUBJECT), values_of(samples, name, Kind.BASELINE)
