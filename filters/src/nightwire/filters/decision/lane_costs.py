"""What filters cost, learnt from the batches that they judged.  Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nightwire.filters.model.live_filter import FilterVersion, LiveFilter
from nightwire.filters.model.messages import RangeCounts

LEAST_ALERTS = 200
"""Alerts after which a cost is known; those of the first batch do not count, for a new process
imports and compiles."""

MOST_ALERTS = 4_000
"""Alerts after which the older ones count half: what a filter costs may change."""


@dataclass
class FilterCost:
    """Alerts that one version of a filter judged of late, and their CPU time. [µs]"""

    alerts: float = 0.0
    cpu_us: float = 0.0

    def add(self, alerts: int, cpu_us: int) -> None:
        """Add a batch."""
        self.alerts += alerts
        self.cpu_us += cpu_us
        if self.alerts > MOST_ALERTS:
            self.alerts, self.cpu_us = self.alerts / 2, self.cpu_us / 2

    @property
    def mean(self) -> float | None:
        """CPU time for an alert; None while it is not known. [µs]"""
        return self.cpu_us / self.alerts if self.alerts >= LEAST_ALERTS else None


@dataclass
class LaneCosts:
    """What each version of a filter costs."""

    _known: dict[FilterVersion, FilterCost] = field(default_factory=dict)

    def add(self, versions: Sequence[FilterVersion], counts: Iterable[RangeCounts]) -> None:
        """Add the counts of a batch; *versions* are the filters of its set, by number."""
        first = set[FilterVersion]()
        for one in counts:
            for number, alerts, cpu_us in zip(one.filters, one.evaluated, one.cpu_us, strict=False):
                version = versions[number]
                if alerts and version not in self._known:
                    first.add(version)
                    self._known[version] = FilterCost()
                if alerts and version not in first:
                    self._known[version].add(alerts, cpu_us)

    def mean(self, version: FilterVersion) -> float | None:
        """Return the cost of a filter for an alert; None while it is not known. [µs]"""
        known = self._known.get(version)
        return known.mean if known else None

    def means(self) -> dict[FilterVersion, float | None]:
        """Return the costs of all."""
        return {version: one.mean for version, one in self._known.items()}

    def forget(self, live: Iterable[LiveFilter]) -> None:
        """Forget all filters but those that are *live*."""
        kept = {one.id for one in live}
        self._known = {version: one for version, one in self._known.items() if version in kept}
