"""Liveness of processes, by heartbeats in the log.  Pure: the log is the only clock."""

import math
from dataclasses import dataclass

LATE, GONE = 5.0, 8.0
"""Silence after which a process is late, and gone. [s, of the log's clock]"""
LONGEST_STEP = 3.0
"""Most time that passes between two records. [s]  While Kafka was away nobody could write, so
that time does not count."""


class LogClock:
    """The log's time, by the times at which Kafka appended its records.

    A process's own clock is never read, be it a day off.  Where Kafka's goes back by more than
    *longest_step*, it was set right, and the log's goes on from there.

    Args:
        longest_step: Most time that passes between two records. [s]

    Attributes:
        now: The log's present. [s since the first record, less steps beyond *longest_step*]
    """

    def __init__(self, longest_step: float = math.inf) -> None:
        self.longest_step, self._newest, self.now = longest_step, 0, 0.0

    def advance(self, appended: int) -> float:
        """Count a record that Kafka appended at *appended* [ms since 1970]; return the present."""
        if self._newest:
            self.now += min(max(0.0, (appended - self._newest) / 1000), self.longest_step)
        set_back = self._newest - appended > 1000 * self.longest_step
        self._newest = appended if set_back else max(self._newest, appended)
        return self.now


@dataclass(frozen=True)
class Holder:
    """The process that holds a name.

    Attributes:
        instance: The run of the process.
        heartbeat: Its last one. [s, of the log's clock]
        ended: Whether it unregistered.
        rivals: Records of other instances under the name meanwhile.
    """

    instance: str
    heartbeat: float
    ended: bool = False
    rivals: int = 0


def next_holder(holder: Holder | None, instance: str, now: float, *, ended: bool) -> tuple[Holder, bool]:
    """Return the holder of a name after a record of *instance*, and whether that record counts.

    The first keeps a name until it unregisters or is gone; records of others count as rivals.
    """
    taken = holder is not None and not holder.ended and now - holder.heartbeat <= GONE
    if holder is not None and taken and holder.instance != instance:
        return Holder(holder.instance, holder.heartbeat, holder.ended, holder.rivals + 1), False
    rivals = holder.rivals if holder is not None and holder.instance == instance else 0
    return Holder(instance, now, ended, rivals), True
