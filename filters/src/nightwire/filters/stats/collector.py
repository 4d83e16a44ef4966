"""What the engine saw of all filters since it began, batch by batch.  No I/O."""

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
    """What was seen of all filters; written batch by batch, read by another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, FilterStats] = {}
        self._passed_at: dict[str, int] = {}
        self._news: set[str] = set()

    def batch(self, decision: Decision, added: BatchTotals, live: Sequence[LiveFilter]) -> None:
        """Take in what a batch decided.

        Args:
            decision: The batch's.
            added: Its counts.
            live: The filters of its set, by number.
        """
        cut = Counter(decision.cut.judges[judge][0] for judge in decision.cut.judge)
        with self._lock:
            for number in np.flatnonzero(added.evaluated).tolist():
                self._count(self._of(live[number], decision.at), number, added, decision.at)
            for key, number in cut.items():
                if key in self._seen:
                    self._seen[key].capped += number
            for one in decision.counts:
                for judge, sample in one.stopped.items():
                    self._of(live[judge], decision.at).add_stopped(sample)

    def _of(self, live: LiveFilter, at: int) -> FilterStats:
        known = self._seen.get(live.key)
        if known is None or known.version != live.version:
            passed_at = known.passed_at if known else self._passed_at.get(live.key, 0)
            known = self._seen[live.key] = FilterStats(
                live.key, live.version, evaluation_mode(live), at, passed_at=passed_at
            )
        return known

    def _count(self, seen: FilterStats, number: int, added: BatchTotals, at: int) -> None:
        passed = int(added.passed[number])
        seen.evaluated += int(added.evaluated[number])
        seen.passed += passed
        seen.faulted += int(added.faulted[number])
        seen.cpu_s += 1e-6 * int(added.cost[number])
        seen.evaluated_at = at
        seen.passed_at = at if passed else seen.passed_at
        self._news.add(seen.key)

    def copies(self, copies: Iterable[AcknowledgedCopy]) -> None:
        """Take in copies that Kafka acknowledged."""
        with self._lock:
            for copy in copies:
                if copy.key in self._seen:
                    self._seen[copy.key].sent += 1
                    self._seen[copy.key].delays.append(copy.delay)
                    self._news.add(copy.key)

    def recall(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take in what an engine before this one wrote: when alerts passed last."""
        with self._lock:
            for record in records:
                if (at := record["passed_at"]) is None:
                    continue
                key, moment = f"{record['owner']}/{record['name']}", milliseconds(at)
                self._passed_at[key] = moment
                if key in self._seen:
                    self._seen[key].passed_at = max(moment, self._seen[key].passed_at)

    def news(self, now: int) -> list[dict[str, Any]]:
        """Return the records of the filters that did something since it was asked last."""
        with self._lock:
            fresh, self._news = sorted(self._news), set()
            return [self._seen[key].record(now) for key in fresh]

    def stopped_most(self) -> Iterator[tuple[str, str, float]]:
        """Yield the condition that stopped most of each filter's alerts, and its share."""
        with self._lock:
            known = [(key, one.stopped.copy()) for key, one in sorted(self._seen.items()) if one.stopped]
        for key, stopped in known:
            ((condition, number),) = stopped.most_common(1)
            yield key, condition, number / stopped.total()
