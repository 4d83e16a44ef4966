"""Statistics of one filter: counts, cost, delays, the conditions that stopped alerts.  Pure.

They begin with the process, or with a filter's version; the accounts cover all time, and are the
proof.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nightwire.filters.model.live_filter import QUICK, LiveFilter
from nightwire.filters.model.messages import RangeCounts

MAX_DELAYS = 500
"""Latest copies of each filter whose delays are kept."""

MAX_SAMPLE = 2_000
"""Stopped alerts after which all counts are halved: the condition that stops most may change."""

COLUMNS, ROWS = "columns", "rows"
"""Evaluation modes: over columns, compiled or written so; or alert by alert."""


def evaluation_mode(live: LiveFilter) -> str:
    """Return the evaluation mode of a filter, `COLUMNS` or `ROWS`."""
    return COLUMNS if live.program or live.text_facts.columns is not None else ROWS


@dataclass
class FilterStats:
    """Statistics of one version of a filter.

    Attributes:
        key: ``owner/name``.
        version: Its version.
        mode: Its evaluation mode, `COLUMNS` or `ROWS`.
        since: Time at which counting began. [ms since 1970, UTC]
        evaluated: Alerts judged.
        passed: Alerts that passed.
        faulted: Alerts on which it failed.
        sent: Copies that Kafka acknowledged.
        capped: Alerts that passed and were cut off.
        cpu_s: CPU time of judging. [s]
        evaluated_at: Time of its last batch, 0 for none. [ms since 1970, UTC]
        passed_at: Time of the last alert that passed any version, 0 for none. [ms since 1970, UTC]
        stopped: Alerts of a sample that each condition stopped.
        delays: Times from Kafka's timestamp of an alert to the acknowledged copy, the latest. [s]
        lane: The lane that judges it.
        lag: Records, and seconds, by which its lane is behind the quick one; None in that.
        unjudged: Alerts that it did not judge, for its lane was too far behind.
    """

    key: str
    version: int
    mode: str = COLUMNS
    since: int = 0
    evaluated: int = 0
    passed: int = 0
    faulted: int = 0
    sent: int = 0
    capped: int = 0
    cpu_s: float = 0.0
    evaluated_at: int = 0
    passed_at: int = 0
    stopped: Counter[str] = field(default_factory=Counter)
    delays: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_DELAYS))
    lane: str = QUICK
    lag: tuple[int, float] | None = None
    unjudged: int = 0

    def delay_quantiles(self, *quantiles: float) -> list[float | None]:
        """Return quantiles of the delays of the latest copies; None without any. [s]"""
        if not self.delays:
            return [None for _ in quantiles]
        return [*np.quantile(self.delays, quantiles, method="inverted_cdf").tolist()]

    def add_stopped(self, sample: Mapping[str, int]) -> None:
        """Add the alerts of a sample that each condition stopped."""
        self.stopped.update(sample)
        if self.stopped.total() > MAX_SAMPLE:
            halves = {condition: number // 2 for condition, number in self.stopped.items()}
            self.stopped = Counter({condition: number for condition, number in halves.items() if number})

    def record(self, now: int) -> dict[str, Any]:
        """Return the record for `seen.<owner>`, written *now*. [ms since 1970, UTC]"""
        owner, _, name = self.key.partition("/")
        p50, p99 = self.delay_quantiles(0.5, 0.99)
        return {
            "owner": owner, "name": name, "version": self.version, "way": self.mode, "since": self.since,
            "evaluated": self.evaluated, "passed": self.passed, "faulted": self.faulted, "sent": self.sent,
            "capped": self.capped, "cpu": self.cpu_s,
            "delay_p50": p50, "delay_p99": p99,
            "evaluated_at": self.evaluated_at or None, "passed_at": self.passed_at or None,
            "stopped": dict(self.stopped.most_common(20)),
            "lane": self.lane, "behind": self.lag and self.lag[0], "behind_s": self.lag and self.lag[1],
            "unjudged": self.unjudged, "time": now,
        }  # fmt: skip


@dataclass(frozen=True)
class BatchTotals:
    """Counts of one batch, by the number of the filter in its set.

    Attributes:
        evaluated: Alerts judged.  int64, shape (filters,), as the others.
        passed: Alerts that passed.
        faulted: Alerts on which it failed.
        cpu_us: CPU time. [µs]
        late: Filters whose time limit of the batch ran out.
    """

    evaluated: "np.ndarray[Any, Any]"
    passed: "np.ndarray[Any, Any]"
    faulted: "np.ndarray[Any, Any]"
    cpu_us: "np.ndarray[Any, Any]"
    late: Sequence[int]


def batch_totals(counts: Iterable[RangeCounts], filters: int) -> BatchTotals:
    """Return the sums of the counts of all ranges, for each of so many *filters*."""
    counts = list(counts)
    late = sorted({number for one in counts for number in one.late})
    columns = {name: np.zeros(filters, np.int64) for name in ("evaluated", "passed", "faulted", "cpu_us")}
    for one in counts:
        at = np.asarray(one.filters, np.int64)
        for name, column in columns.items():
            if len(values := getattr(one, name)):  # decisions of older versions have no cost
                np.add.at(column, at, values)
    return BatchTotals(late=late, **columns)
