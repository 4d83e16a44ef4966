"""One filter before one process: the question, the answer as it comes, and the time that it takes."""

import math
import os
from dataclasses import replace

from nightwire.filters.sandbox._answer import HEADER, NONCE, Answer, ForgedError, decode, length
from nightwire.filters.sandbox._contract import Limits, Outcome, RowFilter
from nightwire.filters.sandbox._patience import Dwell, Usage, complaint, left_s
from nightwire.filters.sandbox._process import Child
from nightwire.filters.sandbox._protocol import GRACE_S, JUDGE, NUDGE, STOP

CHUNK = 1 << 18
"""Read of an answer at a time. [byte]"""

GRACE = Limits(cpu_s=math.inf, wall_s=GRACE_S, patience_s=5 * GRACE_S)
"""For a filter that was told to stop."""


class Case:
    """A filter that is being judged.

    Args:
        child: Its owner's process, which has the batch.
        one: The filter.
        rows: How many rows the batch has.
        limits: What it may use.

    Attributes:
        complaint: Why it was told to stop; None: it was not.

    Raises:
        LostError: The process does not listen.
    """

    def __init__(self, child: Child, one: RowFilter, rows: int, limits: Limits) -> None:
        self.child, self.filter, self.rows = child, one, rows
        self.complaint: str | None = None
        self._limits, self._said = limits, bytearray()
        self._began, self._told = child.usage(), Usage(0.0, 0.0)
        self._dwell = Dwell(limits.alert_s if child.knows(one) else math.inf)
        self._nonce = os.urandom(NONCE)
        self._row, self._cost = rows, Outcome(0)
        names = {"key": one.key, "source": one.source, "entry": one.entry, "transform": one.transform}
        child.tell(JUDGE, {**names, "whole": one.fields is None}, self._nonce)

    def hear(self) -> Answer | None:
        """Take in what the process said; return the answer once it is whole.

        Raises:
            LostError: The process is gone.
            ForgedError: That is no answer.
        """
        self._said += self.child.hear(CHUNK)
        if len(self._said) < HEADER.size:
            return None
        whole = length(self._said, self._nonce, self.rows)
        if len(self._said) > whole:
            raise ForgedError(f"it said {len(self._said) - whole} bytes more than its answer has")
        return decode(self._said, self._nonce, self.rows) if len(self._said) == whole else None

    def left_s(self) -> float:
        """Return after how long something must be done about it, at the earliest. [s]"""
        used = self.child.usage()
        if self.complaint is not None:
            return left_s(GRACE, used.since(self._told))
        used = used.since(self._began)
        return min(left_s(self._limits, used), self._dwelling_left_s(used.cpu_s))

    def _dwelling_left_s(self, cpu_s: float) -> float:
        """Return after how long it may be at one alert for too long, having used *cpu_s* until now. [s]"""
        row = self.child.row()
        if row != self._dwell.row:  # what it used until now went on others
            self._dwell.row, self._dwell.since_s = row, self.child.usage().since(self._began).cpu_s
        return self._dwell.left_s(cpu_s)

    def press(self) -> bool:
        """Tell the filter to stop; return False where it was told, and does not."""
        if self.complaint is not None:
            return False
        now = self.child.usage()
        used = now.since(self._began)
        if left_s(self._limits, used) > 0:
            self._dwell.since_s, self._dwell.told = used.cpu_s, True
            self.child.knock(NUDGE)
        else:
            self._told, self.complaint = now, complaint(self._limits, used)
            self.child.knock(STOP)
        return True

    def measure(self) -> None:
        """Note what it used and where it was; to be asked while the process is there."""
        self._row = self.child.row()
        cpu_s = max(0.0, self.child.usage().since(self._began).cpu_s)
        self._cost = Outcome(0, cpu_s=cpu_s, memory_mb=self.child.grown_mb())

    def answered(self, answer: Answer) -> Outcome:
        """Return what the filter said, once it is measured."""
        faults = answer.faults
        if answer.late and faults:
            last = max(faults)
            faults[last] = f"{self.complaint or self._dwell.complaint or 'it stopped'}: {faults[last]}"
        return replace(
            self._cost,
            evaluated=answer.judged,
            passed=answer.passed,
            rank=answer.rank,
            faults=faults,
            added=answer.added,
            late=answer.late,
        )

    def ended(self, why: str) -> Outcome:
        """Return what is known of a filter, once it is measured, whose process ended or was ended."""
        faults = {self._row: why} if self._row < self.rows else {}
        late = self.complaint is not None
        return replace(self._cost, evaluated=len(faults), faults=faults, late=late, killed=why)
