"""What is measured: sizes, and how much of each.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from nightwire.benchmarks import Size

SIZES = (*(step * 10**power for power in range(2, 6) for step in (1, 2, 5)), 10**6)
"""From 100 bytes to 1 MB. [byte]"""
DECADES = tuple(size for size in SIZES if str(size).startswith("1"))
UNITS = ((10**6, "mb", "MB"), (10**3, "kb", "kB"), (1, "bytes", "bytes"))


@dataclass(frozen=True)
class Plan:
    """What a run measures.

    Attributes:
        sizes: Of records. [byte]
        records: That follow each other, at most.
        volume: Of all of them together, at most. [byte]
        events: That a filter judges.
    """

    sizes: Sequence[int]
    records: int
    volume: int
    events: int

    def count(self, size: int) -> int:
        """Return how many records of *size* follow each other."""
        return max(1, min(self.records, self.volume // size))


def plan_of(size: Size) -> Plan:
    """Return what a run of *size* measures."""
    full = size.profile == "full"
    return Plan(
        SIZES if full else DECADES, size.alerts, (256 if full else 32) * 10**6, min(size.alerts, 2_500)
    )


def rate_name(way: str, size: int) -> str:
    """Return the name of the bandwidth of records of *size* that go this *way*."""
    return f"{way}_{words_of(size, 1).replace(' ', '_')}_megabytes_per_second"


def words_of(size: int, column: int = 2) -> str:
    """Return *size* for people; with *column* 1, as in names."""
    unit = next(one for one in UNITS if size >= one[0])
    return f"{size // unit[0]} {unit[column]}"
