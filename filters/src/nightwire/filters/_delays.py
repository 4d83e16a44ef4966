"""How long alerts take from the producer to a user's topic, as a histogram for Prometheus.

Counted by arrays: a batch of a thousand filters sends twenty thousand copies.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BOUNDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.3, 1.7, 2.3, 3.0, 4.0, 6.0, 10.0, 20.0, 60.0, 300.0)
"""Upper ends of the buckets: fine where the goals lie, 0.5 and 1.3 s at a steady rate, 3 and 6. [s]"""

CHOICES = ("first", "best")
"""What filters take of a visit."""
NAME = "nightwire_filters_delay_seconds"
TEXT = "From Kafka's timestamp of an alert to the acknowledged copy in a filter's topic."


class Delays(Collector):
    """The histogram, one for each choice (`first`, `best`): the best of a visit wait for its end."""

    def __init__(self) -> None:
        self._counts: dict[str, Any] = defaultdict(lambda: np.zeros(len(BOUNDS) + 1, np.int64))
        self._sums: dict[str, float] = defaultdict(float)
        for choice in CHOICES:
            self.observe(choice, [])  # nothing yet is zero: else the first visit would be no increase

    def observe(self, choice: str, delays: Sequence[float]) -> None:
        """Count copies by their *delays* [s]; one below zero, by clocks that differ, counts as none."""
        found = np.maximum(np.asarray(delays, np.float64), 0.0)
        places = np.searchsorted(BOUNDS, found)
        self._counts[choice] = self._counts[choice] + np.bincount(places, minlength=len(BOUNDS) + 1)
        self._sums[choice] += float(found.sum())

    def collect(self) -> Iterator[Metric]:
        """Yield the histogram."""
        family = HistogramMetricFamily(NAME, TEXT, labels=["choice"])
        for choice, counts in sorted(self._counts.items()):
            ends = [*map(str, BOUNDS), "+Inf"]
            buckets = list(zip(ends, np.cumsum(counts).tolist(), strict=True))
            family.add_metric([choice], buckets, self._sums[choice])
        yield family
