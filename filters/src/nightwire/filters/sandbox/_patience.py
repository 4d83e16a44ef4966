"""When a filter has had its time.  Pure."""

from dataclasses import dataclass

from nightwire.filters.sandbox._contract import Limits

STARVED = 5
"""How many times its wall time a filter may take, where the machine gives it no core."""

LEAST_SHARE = 0.25
"""What a process uses of a core that it has; what its CPU time does not account for so, it waited for a core.
Only where the kernel does not say how long it did."""


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
        return min(self.elapsed_s, self.cpu_s / LEAST_SHARE)

    def since(self, earlier: "Usage") -> "Usage":
        """Return what it used after *earlier*."""
        both = self.starved_s is not None and earlier.starved_s is not None
        starved = (self.starved_s or 0.0) - (earlier.starved_s or 0.0) if both else None
        return Usage(self.cpu_s - earlier.cpu_s, self.elapsed_s - earlier.elapsed_s, starved)


def left_s(limits: Limits, used: Usage) -> float:
    """Return after how long it may have had its time, at the earliest; zero or less: it had. [s]"""
    return min(
        limits.cpu_s - used.cpu_s, limits.wall_s - used.own_s, STARVED * limits.wall_s - used.elapsed_s
    )


def complaint(limits: Limits, used: Usage) -> str:
    """Return which limit it has passed."""
    if used.cpu_s >= limits.cpu_s:
        return f"took longer than {limits.cpu_s:g} s of CPU time"
    if used.own_s >= limits.wall_s:
        return f"took longer than {limits.wall_s:g} s by the clock, {used.cpu_s:.1f} s of it CPU time"
    return f"was not done after {STARVED * limits.wall_s:g} s, of which it had {used.cpu_s:.1f} s of CPU time"
