"""When a filter has had its time.  Pure."""

from dataclasses import dataclass

from nightwire.filters.sandbox._contract import Limits

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
    return min(limits.cpu_s - used.cpu_s, limits.wall_s - used.own_s, limits.patience_s - used.elapsed_s)


def complaint(limits: Limits, used: Usage) -> str:
    """Return which limit it has passed."""
    if used.cpu_s >= limits.cpu_s:
        return f"took longer than {limits.cpu_s:g} s of CPU time"
    if used.own_s >= limits.wall_s:
        return f"took longer than {limits.wall_s:g} s by the clock, {used.cpu_s:.1f} s of it CPU time"
    return f"was not done after {limits.patience_s:g} s, of which it had {used.cpu_s:.1f} s of CPU time"


@dataclass
class Dwell:
    """How long a filter has been at one row, as far as it shows.

    Attributes:
        limit_s: CPU time that it may take for one. [s]
        row: Where it was seen last.
        since_s: CPU time that it had used when it was seen there first, or was told last. [s]
        told: It was told that it is there for too long.
    """

    limit_s: float
    row: int = 0
    since_s: float = 0.0
    told: bool = False

    def left_s(self, cpu_s: float) -> float:
        """Return after how long it is too long there, having used *cpu_s* before it was seen there. [s]"""
        return self.limit_s - (cpu_s - self.since_s)

    @property
    def complaint(self) -> str | None:
        """Why it was told to stop; None: it was not."""
        return f"took longer than {self.limit_s:g} s of CPU time for one alert" if self.told else None
