"""Statistics of all filters, collected batch by batch since the engine began.  No I/O."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nightwire.filters.decision.decision import Decision
from nightwire.filters.delivery.deliver import AcknowledgedCopy
from nightwire.filters.model.filter_set import milliseconds
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.stats.filter_stats import BatchTotals, FilterStats, evaluation_mode


class StatsCollector:
    """Collects the statistics of all filters; written batch by batch, read by another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stats: dict[str, FilterStats] = {}
        self._passed_at: dict[str, int] = {}
        self._changed: set[str] = set()

    def add_batch(self, decision: Decision, totals: BatchTotals, live: Sequence[LiveFilter]) -> None:
        """Add the counts of a batch.

        Args:
            decision: The batch's decision.
            totals: Its counts.
            live: The filters of its set, by number.
        """
        capped = Counter(decision.overflow.filters[at][0] for at in decision.overflow.filter_index)
        with self._lock:
            for number in np.flatnonzero(totals.evaluated).tolist():
                self._count(self._of(live[number], decision.at), number, totals, decision.at)
            for key, number in capped.items():
                if key in self._stats:
                    self._stats[key].capped += number
            for one in decision.counts:
                for number, sample in one.stopped.items():
                    self._of(live[number], decision.at).add_stopped(sample)
            if unjudged := sum(one.unjudged for one in decision.counts):
                for live_filter in live:
                    self._of(live_filter, decision.at).unjudged += unjudged
                    self._changed.add(live_filter.key)

    def set_lag(self, live: Sequence[LiveFilter], records: int, seconds: float, now: int) -> None:
        """Note how far the lane of some filters is behind. [s]"""
        with self._lock:
            for one in live:
                self._of(one, now).lag = (records, seconds)
                self._changed.add(one.key)

    def _of(self, live: LiveFilter, at: int) -> FilterStats:
        """Return the statistics of a filter; those of a new version begin now, at *at*."""
        known = self._stats.get(live.key)
        if known is None or known.version != live.version:
            passed_at = known.passed_at if known else self._passed_at.get(live.key, 0)
            known = self._stats[live.key] = FilterStats(
                live.key, live.version, evaluation_mode(live), at, passed_at=passed_at
            )
        if known.lane != live.lane:
            known.lane, known.lag = live.lane, None
        return known

    def _count(self, stats: FilterStats, number: int, totals: BatchTotals, at: int) -> None:
        passed = int(totals.passed[number])
        stats.evaluated += int(totals.evaluated[number])
        stats.passed += passed
        stats.faulted += int(totals.faulted[number])
        stats.cpu_s += 1e-6 * int(totals.cpu_us[number])
        stats.evaluated_at = at
        stats.passed_at = at if passed else stats.passed_at
        self._changed.add(stats.key)

    def add_copies(self, copies: Iterable[AcknowledgedCopy]) -> None:
        """Add copies that Kafka acknowledged."""
        with self._lock:
            for copy in copies:
                if (stats := self._stats.get(copy.key)) is not None:
                    stats.sent += 1
                    stats.delays.append(copy.delay)
                    self._changed.add(copy.key)

    def restore(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take over the times of the last passed alerts from an earlier engine's records."""
        with self._lock:
            for record in records:
                if (at := record["passed_at"]) is None:
                    continue
                key, passed_at = f"{record['owner']}/{record['name']}", milliseconds(at)
                self._passed_at[key] = passed_at
                if key in self._stats:
                    self._stats[key].passed_at = max(passed_at, self._stats[key].passed_at)

    def changed_records(self, now: int) -> list[dict[str, Any]]:
        """Return the records of the filters whose statistics changed since the last call."""
        with self._lock:
            changed, self._changed = sorted(self._changed), set()
            return [self._stats[key].record(now) for key in changed]

    def mark_changed(self, keys: Iterable[str]) -> None:
        """Return the records of these filters once more."""
        with self._lock:
            self._changed.update(keys)

    def stopped_most(self) -> Iterator[tuple[str, str, float]]:
        """Yield each filter's key, the condition that stopped most alerts, and its share."""
        with self._lock:
            known = [(key, one.stopped.copy()) for key, one in sorted(self._stats.items()) if one.stopped]
        for key, stopped in known:
            ((condition, number),) = stopped.most_common(1)
            yield key, condition, number / stopped.total()
