"""The share of the machine's CPU that processes other than ours took.  Pure."""

from collections.abc import Sequence

DISTURBED = 0.05
"""Share of all cores' time taken by others above which a run is marked."""


def others_share(before: Sequence[float], after: Sequence[float], ours: float) -> float:
    """Return the share (0 … 1) of all cores' time between two readings that others took.

    Other machines' part (steal) counts; interrupts (irq, softirq) belong to nobody: much of them is
    our own traffic over loopback.

    Args:
        before: Times of all cores since boot, as `psutil.cpu_times` has them. [s]
        after: The same, later.
        ours: CPU time of our processes between the two. [s]
    """
    user, nice, system, idle, iowait, irq, softirq, steal = (
        later - sooner for sooner, later in zip(before[:8], after[:8], strict=True)
    )
    busy = user + nice + system + steal
    total = busy + idle + iowait + irq + softirq
    return min(1.0, max(0.0, (busy - ours) / total)) if total > 0 else 0.0
