"""The CPU time that filters that are code get, from the times they took so far.  Pure.

Nobody waits for a filter that misbehaves: what it gets follows from what it usually takes, is
little once it had to be stopped, and grows back when it behaves.
"""

from dataclasses import dataclass, field

from nightwire.filters.model.live_filter import FilterVersion, LiveFilter
from nightwire.filters.sandbox import Outcome, RowFilter

FILTER_CPU_S = 2.0
"""CPU time that one filter may take in one task of one batch. [s]"""

USUAL_FACTOR, STOPPED_FACTOR = 10.0, 2.0
"""A filter may take so many times the CPU time that it usually takes; and so many times, where it
had to be stopped the last time."""

LEAST_CPU_S, LEAST_STOPPED_CPU_S = 0.5, 0.05
"""It gets at least so much for a batch, for it may have to make columns that it did without before;
and so much, where it had to be stopped the last time. [s]"""


@dataclass
class FilterTiming:
    """The known CPU times of one version of a filter.

    Attributes:
        per_alert: CPU time that it took for an alert, in its costliest batch. [s]
        most: CPU time that it took for a batch at most. [s]
        known: It was judged to the end once, at least; else nothing is known of its times.
        stopped: It had to be stopped the last time.
    """

    per_alert: float = 0.0
    most: float = 0.0
    known: bool = False
    stopped: bool = False

    def cpu_s(self, rows: int) -> float:
        """Return the CPU time that it gets for so many *rows*. [s]"""
        usual = max(self.per_alert * rows, self.most)
        if self.stopped and self.known:
            return max(LEAST_STOPPED_CPU_S, STOPPED_FACTOR * usual)
        return max(LEAST_CPU_S, USUAL_FACTOR * usual)

    def record(self, outcome: Outcome) -> None:
        """Add its times for a batch."""
        self.stopped = outcome.stopped is not None
        if not self.stopped:
            self.per_alert = max(self.per_alert, outcome.cpu_s / max(1, outcome.evaluated))
            self.most = max(self.most, outcome.cpu_s)
            self.known = True


@dataclass
class CpuBudget:
    """The CPU time that filters get; some get none for the rest of a batch.

    Args:
        limit: What a filter gets at most, and where nothing is known of it. [s]
    """

    limit: float
    _timings: dict[FilterVersion, FilterTiming] = field(default_factory=dict)
    _refusals: dict[FilterVersion, str] = field(default_factory=dict)

    def begin_batch(self) -> None:
        """Begin a batch: filters that had to be stopped in the one before are tried once more."""
        self._refusals.clear()

    def refusal(self, live: LiveFilter) -> str | None:
        """Return why a filter is not tried again in this batch; None: it is."""
        return self._refusals.get((live.key, live.version))

    def was_stopped(self, live: LiveFilter) -> bool:
        """Return whether a filter had to be stopped the last time."""
        timing = self._timings.get((live.key, live.version))
        return timing is not None and timing.stopped

    def cpu_s(self, live: LiveFilter, rows: int) -> float:
        """Return the CPU time that a filter gets for so many *rows*. [s]"""
        timing = self._timings.get((live.key, live.version))
        return self.limit if timing is None else min(self.limit, timing.cpu_s(rows))

    def record(self, one: RowFilter, outcome: Outcome) -> None:
        """Add the time of a filter, and whether it had to be stopped."""
        version = (one.key, one.version)
        self._timings.setdefault(version, FilterTiming()).record(outcome)
        if outcome.stopped is not None:
            self._refusals[version] = f"{outcome.stopped}; not tried again in this batch"
