"""The share of the machine's CPU that processes other than ours took.  Pure."""

from dataclasses import dataclass

DISTURBED = 0.05
"""Share of all cores' time taken by others above which a run is marked."""


@dataclass(frozen=True)
class Jiffies:
    """Time of all cores since boot: the first line of ``/proc/stat`` (proc(5)). [1/100 s, mostly]

    Attributes:
        processes: In processes: user, nice, system; and *steal*, which other machines took.
        total: In all, idle and interrupts included.
    """

    processes: int
    total: int


def parse_stat(text: str) -> Jiffies:
    """Read ``/proc/stat``.

    Interrupts (irq, softirq) belong to nobody: much of them is our own traffic over loopback.
    """
    words = text.split("\n", 1)[0].split()
    user, nice, system, idle, iowait, irq, softirq, steal = (int(word) for word in words[1:9])
    busy = user + nice + system + steal
    return Jiffies(busy, busy + idle + iowait + irq + softirq)


def others_share(before: Jiffies, after: Jiffies, ours: float, ticks: int) -> float:
    """Return the share (0 … 1) of all cores' time between two readings that others took.

    Args:
        before: First reading.
        after: Second reading.
        ours: CPU time of our processes between them. [s]
        ticks: Jiffies a second.
    """
    total = after.total - before.total
    if total <= 0:
        return 0.0
    theirs = (after.processes - before.processes) - ours * ticks
    return min(1.0, max(0.0, theirs / total))
