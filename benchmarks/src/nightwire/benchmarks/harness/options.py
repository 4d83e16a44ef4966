"""What a person asks of a run, and the size that it gives to a scenario."""

from dataclasses import dataclass, replace

from nightwire.benchmarks import Scenario, Size

LIMIT = 1680.0
"""Longest time of all scenarios together. [s]  With the report it is half an hour."""
FULL_LIMIT = 48 * 3600.0
"""The same in the profile `full`. [s]"""
SMOKE = 200
"""Most alerts of a run of the profile `smoke`."""


@dataclass(frozen=True)
class RunOptions:
    """What a person asked for; None leaves it to the scenario's profile.

    Of experiments run those whose names contain *only*.
    """

    profile: str = "quick"
    alerts: int | None = None
    pairs: int | None = None
    rate: float | None = None
    time_limit: float = LIMIT
    engine: str = "own"
    bootstrap: str | None = None
    fresh: bool = False
    record: bool = False
    only: str = ""


def size_of(scenario: Scenario, options: RunOptions) -> Size:
    """Return the size that *options* gives to *scenario*."""
    asked = {"alerts": options.alerts, "pairs": options.pairs, "rate": options.rate}
    given = {name: value for name, value in asked.items() if value is not None}
    usual = (
        smoke(scenario.standard["quick"])
        if options.profile == "smoke"
        else scenario.standard[options.profile]
    )
    return replace(usual, **given)  # type: ignore[arg-type]


def smoke(quick: Size) -> Size:
    """Return the smallest size that still goes through everything: one pair, few alerts."""
    return replace(quick, alerts=min(quick.alerts, SMOKE), pairs=1, profile="smoke")


def declared_size(size: Size) -> Size:
    """Return *size* as scenarios know it, which have two profiles: smoke is a small `quick`."""
    return replace(size, profile="quick") if size.profile == "smoke" else size


def estimate(scenario: Scenario, options: RunOptions) -> float:
    """Return how long a run of *scenario* takes. [s]"""
    return scenario.needs(declared_size(size_of(scenario, options))).seconds
