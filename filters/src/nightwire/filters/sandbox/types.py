"""Values that the sandbox takes and returns: filters, limits, batches, outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

Strength = Literal["strong", "weak"]

MIN_WALL_S = 0.5
"""Least time by the clock, however little CPU time a filter gets: it may wait for memory. [s]"""


class SandboxError(Exception):
    """The sandbox cannot be had now: its zygote does not answer, or a process does not start."""


class NoSandboxError(SandboxError):
    """The sandbox cannot be had on this machine, as it was asked for."""


@dataclass(frozen=True)
class RowFilter:
    """A filter that is judged row by row, or that takes columns itself.

    Attributes:
        owner: Whose it is: filters of one owner share a process, of two owners never.
        name: Its name.
        version: Its version.
        source: Python source, as it travelled.
        entry: Name of its function of one alert.
        fields: What it reads of an alert, canonical names or dotted paths; None: it wants the whole
            alert.
        cpu_s: Less CPU time than the limits allow, for one that was late before, say. [s]
        transform: Name of its function that computes what is added to what passes; empty for none.
        imports: Packages that its source imports; None: the source is asked.
        columns: Columns that it is given, many alerts at once, none: a table; None: it is given
            alert by alert.
        canonical: The canonical values that it names, where *fields* does not say what it reads.
        matches: What catalogues add to its alerts (`MatchName`).
    """

    owner: str
    name: str
    version: int
    source: str
    entry: str
    fields: tuple[str, ...] | None = None
    cpu_s: float | None = None
    transform: str = ""
    imports: frozenset[str] | None = None
    columns: tuple[str, ...] | None = None
    canonical: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``owner/name``."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True)
class Limits:
    """What one filter may use for one batch.

    Attributes:
        cpu_s: CPU time. [s]
        wall_s: Time by the clock, less what it waited for a core. [s]
        total_s: Time by the clock in any case. [s]
        alert_s: CPU time for one alert, in a process that has judged a batch by this filter before.
            [s]
        memory_mb: Memory that its owner's process may take beyond what it has at its start. [MiB]
        nice: By how much its owner's process gives way to others (``nice``).
    """

    cpu_s: float = 2.0
    wall_s: float = 5.0
    total_s: float = 25.0
    alert_s: float = 0.1
    memory_mb: int = 1024
    nice: int = 2

    def within(self, cpu_s: float | None) -> "Limits":
        """Return these limits with *cpu_s* of CPU time at most, time by the clock in proportion."""
        if cpu_s is None or cpu_s >= self.cpu_s:
            return self
        wall_s = max(self.wall_s * cpu_s / self.cpu_s, min(MIN_WALL_S, self.wall_s))
        return replace(self, cpu_s=cpu_s, wall_s=wall_s)


@dataclass(frozen=True)
class Outcome:
    """What one filter said of one batch; ``rejected = evaluated - len(passed) - len(faults)``.

    Attributes:
        evaluated: Rows that have a verdict or a fault; less than the batch has where the filter was
            stopped.
        passed: Rows that passed, ascending; int64, shape (p,).
        rank: The number that it returned for each of them, NaN where it returned none; float64,
            shape (p,).
        faults: What went wrong, by row, with the line where that is known.
        late: It took longer than its limits allow.
        killed: Why its process had to be ended, or ended; None where it lives.
        cpu_s: CPU time it took. [s]
        added: What its transform adds to each alert that passed, as JSON; shape (p,), or none.
    """

    evaluated: int
    passed: "np.ndarray[Any, Any]" = field(default_factory=lambda: np.empty(0, np.int64))
    rank: "np.ndarray[Any, Any]" = field(default_factory=lambda: np.empty(0, np.float64))
    faults: Mapping[int, str] = field(default_factory=dict)
    late: bool = False
    killed: str | None = None
    cpu_s: float = 0.0
    added: Sequence[str] = ()

    @property
    def stopped(self) -> str | None:
        """Why it had to be stopped; None: it did not."""
        if self.killed is not None or not self.late:
            return self.killed
        return self.faults[max(self.faults)] if self.faults else "took too long"

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether it asked for memory that it did not get."""
        return any(MemoryError.__name__ in text for text in self.faults.values())


@dataclass(frozen=True)
class BatchInput:
    """One batch for all filters: columns, or whole messages with the schemas they need, or both.

    Attributes:
        survey: Name of the survey.
        rows: How many alerts.
        columns: A ``pyarrow.RecordBatch`` of dotted paths.
        values: Messages as they lay in Kafka.
        schemas: Schemas by id, of all ids that *values* name.
    """

    survey: str
    rows: int
    columns: Any = None
    values: Sequence[bytes] | None = None
    schemas: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def lacks(self, row_filter: RowFilter) -> str | None:
        """Return what *row_filter* needs and the batch has not, or None."""
        if row_filter.fields is None and self.values is None:
            return "it wants whole alerts, and the batch brings columns only"
        if row_filter.fields is not None and self.columns is None:
            return "it wants columns, and the batch brings whole alerts only"
        return None


MIN_CORE_SHARE = 0.25
"""Share of a core that a running process is taken to use; the rest of its time it waited for one.

Only where the kernel does not tell how long it waited."""


@dataclass(frozen=True)
class Usage:
    """What a filter used so far.

    Attributes:
        cpu_s: CPU time. [s]
        elapsed_s: Time by the clock. [s]
        starved_s: How much of it its process waited for a core; None: the kernel does not say. [s]
    """

    cpu_s: float
    elapsed_s: float
    starved_s: float | None = None

    @property
    def own_s(self) -> float:
        """Time by the clock that is its own doing: it ran, or slept. [s]"""
        if self.starved_s is not None:
            return self.elapsed_s - self.starved_s
        return min(self.elapsed_s, self.cpu_s / MIN_CORE_SHARE)

    def since(self, earlier: "Usage") -> "Usage":
        """Return what it used after *earlier*."""
        both = self.starved_s is not None and earlier.starved_s is not None
        starved = (self.starved_s or 0.0) - (earlier.starved_s or 0.0) if both else None
        return Usage(self.cpu_s - earlier.cpu_s, self.elapsed_s - earlier.elapsed_s, starved)
