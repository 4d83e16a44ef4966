"""What the engine saw of each filter: counts, cost, delays, what stopped most.  Pure.

It begins with the process, or with a filter's version; the accounts have what was before, and the proof.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import RangeCounts

RECENT = 500
"""Copies whose delays are remembered, of each filter."""

SAMPLE = 2_000
"""Stopped alerts after which those of before count half: a condition that stopped most may have changed."""

COLUMNS, ROWS = "columns", "rows"
"""How a filter is judged: compiled, over columns; or alert by alert."""


def evaluation_mode(live: LiveFilter) -> str:
    """Return how a filter is judged: `COLUMNS` or `ROWS`."""
    return COLUMNS if live.program else ROWS


@dataclass
class FilterStats:
    """What was seen of one version of a filter.

    Attributes:
        key: ``owner/name``.
        version: Its version.
        way: How it is judged: `COLUMNS` or `ROWS`.
        since: From when on it is counted. [ms since 1970, UTC]
        evaluated: Alerts judged,
        passed: of these passed,
        faulted: failed on.
        sent: Copies that Kafka acknowledged.
        capped: Alerts that passed and were cut off.
        cpu_s: CPU time of judging. [s]
        evaluated_at: When it judged last, [ms since 1970, UTC]; 0 for never.
        passed_at: When an alert passed last, of any version.
        stopped: Of a sample, how many alerts each condition stopped.
        delays: From Kafka's timestamp of the alert to the acknowledged copy, of the latest. [s]
    """

    key: str
    version: int
    way: str = COLUMNS
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
    delays: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def slowest(self, *percent: int) -> list[float | None]:
        """Return what so many in a hundred of the latest copies did not exceed, for each of *percent*. [s]"""
        ordered = sorted(self.delays)
        return [ordered[-(-len(ordered) * one // 100) - 1] if ordered else None for one in percent]

    def add_stopped(self, sample: Mapping[str, int]) -> None:
        """Take in what conditions stopped of a sample."""
        self.stopped.update(sample)
        if self.stopped.total() > SAMPLE:
            halves = {condition: number // 2 for condition, number in self.stopped.items()}
            self.stopped = Counter({condition: number for condition, number in halves.items() if number})

    def record(self, now: int) -> dict[str, Any]:
        """Return it as a record of `seen.<owner>`, written *now*. [ms since 1970, UTC]"""
        owner, _, name = self.key.partition("/")
        half, most = self.slowest(50, 99)
        return {
            "owner": owner, "name": name, "version": self.version, "way": self.way, "since": self.since,
            "evaluated": self.evaluated, "passed": self.passed, "faulted": self.faulted, "sent": self.sent,
            "capped": self.capped, "cpu": self.cpu_s,
            "delay_p50": half, "delay_p99": most,
            "evaluated_at": self.evaluated_at or None, "passed_at": self.passed_at or None,
            "stopped": dict(self.stopped.most_common(20)), "time": now,
        }  # fmt: skip


@dataclass(frozen=True)
class BatchTotals:
    """What a batch did, by the number of the filter in its set.

    Attributes:
        evaluated: Alerts judged.  int64, shape (filters,), as the others.
        passed: Of these passed.
        faulted: Of these failed on.
        cost: CPU time. [µs]
        late: Filters that had no time left.
    """

    evaluated: "np.ndarray[Any, Any]"
    passed: "np.ndarray[Any, Any]"
    faulted: "np.ndarray[Any, Any]"
    cost: "np.ndarray[Any, Any]"
    late: Sequence[int]


def batch_totals(counts: Iterable[RangeCounts], filters: int) -> BatchTotals:
    """Return the counts of all ranges, added up for each of so many *filters*."""
    counts = list(counts)
    late = sorted({judge for one in counts for judge in one.late})
    columns = {name: np.zeros(filters, np.int64) for name in ("evaluated", "passed", "faulted", "cost")}
    for one in counts:
        at = np.asarray(one.judges, np.int64)
        for name, column in columns.items():
            if len(values := getattr(one, name)):  # what was decided before costs were told has none
                np.add.at(column, at, values)
    return BatchTotals(late=late, **columns)
