"""How much time filters that are code get, from what they took so far.  Pure.

Nobody waits for a filter that misbehaves: what it gets is told by what it usually takes, is little
once it had to be stopped, and grows back when it behaves.
"""

from dataclasses import dataclass, field

from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.sandbox import Outcome, RowFilter

USUAL_FACTOR = 10.0
"""A filter may take so many times the CPU time that it usually takes; and
"""

STOPPED_FACTOR = 2.0
"""so many times, where it had to be stopped the last time."""

LEAST_CPU_S = 0.5
"""But this much for a batch in any case: it may have to make columns that it did without before;
and [s]
"""

LEAST_STOPPED_CPU_S = 0.05
"""this much, where it had to be stopped the last time. [s]"""

FilterVersion = tuple[str, int]


@dataclass
class FilterTiming:
    """What is known of one version of a filter.

    Attributes:
        per_alert: CPU time that it took for an alert, in its costliest batch. [s]
        most: CPU time that it took for a batch at most. [s]
        good: It was judged to the end once, at least; else nothing is known of its times.
        stopped: It had to be stopped the last time.
    """

    per_alert: float = 0.0
    most: float = 0.0
    good: bool = False
    stopped: bool = False

    def length(self, rows: int) -> float:
        """Return the CPU time that it gets for so many *rows*. [s]"""
        usual = max(self.per_alert * rows, self.most)
        if self.stopped and self.good:
            return max(LEAST_STOPPED_CPU_S, STOPPED_FACTOR * usual)
        return max(LEAST_CPU_S, USUAL_FACTOR * usual)

    def note(self, outcome: Outcome) -> None:
        """Take in what it took."""
        self.stopped = outcome.stopped is not None
        if not self.stopped:
            self.per_alert = max(self.per_alert, outcome.cpu_s / max(1, outcome.evaluated))
            self.most = max(self.most, outcome.cpu_s)
            self.good = True


@dataclass
class CpuBudget:
    """How much CPU time filters get, and which get none for the rest of a batch.

    Args:
        budget: What a filter gets at most, and where nothing is known of it. [s]
    """

    budget: float
    _habits: dict[FilterVersion, FilterTiming] = field(default_factory=dict)
    _out: dict[FilterVersion, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Note that a batch begins: what had to be stopped in the one before is tried once more."""
        self._out.clear()

    def out(self, live: LiveFilter) -> str | None:
        """Return why a filter is not tried again in this batch; None: it is."""
        return self._out.get((live.key, live.version))

    def is_short(self, live: LiveFilter) -> bool:
        """Return whether a filter had to be stopped the last time."""
        habit = self._habits.get((live.key, live.version))
        return habit is not None and habit.stopped

    def length(self, live: LiveFilter, rows: int) -> float:
        """Return the CPU time that a filter gets for so many *rows*. [s]"""
        habit = self._habits.get((live.key, live.version))
        return self.budget if habit is None else min(self.budget, habit.length(rows))

    def note(self, one: RowFilter, outcome: Outcome) -> None:
        """Take in what a filter took, and whether it had to be stopped."""
        named = (one.key, one.version)
        self._habits.setdefault(named, FilterTiming()).note(outcome)
        if outcome.stopped is not None:
            self._out[named] = f"{outcome.stopped}; not tried again in this batch"


FILTER_CPU_S = 2.0
"""CPU time that one filter may take in one task of one batch. [s]"""
