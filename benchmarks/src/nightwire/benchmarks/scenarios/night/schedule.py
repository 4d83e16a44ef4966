"""When the shutter closes and when alerts are due, visit after visit.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from nightwire.benchmarks import Figures
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.workers.alerts.due_times import SHARES

SOON = 60.0
"""Rubin's alerts are to be out so long after the readout; [s] (DMTN-102, DMTN-028)."""


@dataclass(frozen=True)
class Schedule:
    """Visits at a steady interval, which wait for nobody.

    Attributes:
        visits: How many.
        alerts: In each.
        interval: From one shutter to the next. [s]
        spread: From the first alert of a visit to where the next would begin; 0: all are due at the
            shutter. [s]
    """

    visits: int
    alerts: int
    interval: float
    spread: float

    @property
    def count(self) -> int:
        """Alerts in all."""
        return self.visits * self.alerts

    def shutter(self, start: float, visit: int) -> float:
        """Return when the shutter of *visit* (from 0) closes, the first at *start*. [s]"""
        return start + visit * self.interval

    def dues(self, start: float, visit: int) -> list[float]:
        """Return when the alerts of *visit* are due. [s]"""
        closed = self.shutter(start, visit)
        return [closed + turn * self.spread / self.alerts for turn in range(self.alerts)]


@dataclass(frozen=True)
class Delays:
    """How long copies of alerts took, from when each was due and from its shutter. [s]"""

    due: Sequence[float]
    shutter: Sequence[float]

    def figures(self, name: str) -> Figures:
        """Return percentiles, and the share that was with its reader in time."""
        found = {f"{name}_write_{key}_ms": quantile(self.due, share) * 1e3 for key, share in SHARES.items()}
        found |= {f"{name}_shutter_{key}_seconds": quantile(self.shutter, s) for key, s in SHARES.items()}
        return found | {f"{name}_within_60_seconds": within(self.shutter, SOON)}


def within(delays: Sequence[float], limit: float) -> float:
    """Return the share (0 … 1) of *delays* that are at most *limit*."""
    return sum(one <= limit for one in delays) / len(delays)
