"""What a filter did with recent alerts before it goes live, and whether that is good enough.  Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

WARM = 20
"""Fewest alerts from which the cost of one is told."""


@dataclass(frozen=True)
class Rules:
    """What an operator asks of a filter before it goes live.

    Attributes:
        alerts: Recent alerts of each survey that it is tried on.
        share: Largest part of them that may pass.  Not asked of filters that send the best few of a visit,
            where the cap says how many, nor of those that read what passed others, nor of fewer alerts than
            *fewest*.
        fewest: Alerts that a share is told from.
        cpu_ms: CPU time that an alert may cost on average: what a batch has, over the alerts of a batch. [ms]
        memory_mb: Memory that the filter may take. [MB]
        untried: Whether an owner may submit a filter without a trial.
        backfill: Most alerts that a backfill sends; the rest goes to overflow.
    """

    alerts: int = 300
    share: float = 0.05
    fewest: int = 200
    cpu_ms: float = 0.8
    memory_mb: int = 1024
    untried: bool = False
    backfill: int = 1000


@dataclass(frozen=True)
class Trial:
    """What a filter did with some recent alerts.

    Attributes:
        evaluated: Alerts with a verdict or a failure.
        passed: Those that passed.
        faulted: Those that it failed on.
        fault: What went wrong first, with its line.
        broken: Why it could not be tried, or was stopped.
        cpu_ms: What an alert cost. [ms]  None where there were too few.
    """

    evaluated: int = 0
    passed: int = 0
    faulted: int = 0
    fault: str | None = None
    broken: str | None = None
    cpu_ms: float | None = None

    def refusals(self, rules: Rules, *, any_share: bool = False) -> list[str]:
        """Return why the filter is refused; empty when it is not.  *any_share*: it may pass them all."""
        if self.broken:
            return [self.broken]
        if (self.fault or "").startswith("MemoryError"):
            return [f"too much memory: it takes more than {rules.memory_mb:,} MB: {self.fault}"]
        if self.evaluated and self.faulted == self.evaluated:
            return [f"failed on all of {self.evaluated} recent alerts: {self.fault}"]
        return [*self._too_dear(rules), *(() if any_share else self._too_many(rules))]

    def _too_dear(self, rules: Rules) -> Iterator[str]:
        if self.cpu_ms is not None and self.cpu_ms > rules.cpu_ms:
            yield (
                f"too slow: {self.cpu_ms:.2f} ms of CPU time an alert, limit is {rules.cpu_ms:g} ms: "
                "ask the cheap and selective questions first"
            )

    def _too_many(self, rules: Rules) -> Iterator[str]:
        if self.evaluated < rules.fewest or self.passed <= rules.share * self.evaluated:
            return
        yield (
            f"passes too much: {self.passed} of {self.evaluated} recent alerts, "
            f"{self.passed / self.evaluated:.1%}, limit is {rules.share:.0%}: "
            "ask for more, or return a rank and submit with --choice best"
        )

    def remark(self) -> str:
        """Return what the owner should know of an accepted filter."""
        if not self.evaluated:
            return "not tried: there are no alerts yet"
        said = f"tried on {self.evaluated} recent alerts: {self.passed} passed"
        if self.cpu_ms is not None:
            said += f", {1000 * self.cpu_ms:.0f} µs each"
        return f"{said}, {self.faulted} failed: {self.fault}" if self.faulted else said


def together(trials: list[Trial]) -> Trial:
    """Return the trials on several surveys' alerts as one."""
    costs = [one.cpu_ms for one in trials if one.cpu_ms is not None]
    return Trial(
        sum(one.evaluated for one in trials),
        sum(one.passed for one in trials),
        sum(one.faulted for one in trials),
        next((one.fault for one in trials if one.fault), None),
        next((one.broken for one in trials if one.broken), None),
        max(costs, default=None),
    )
