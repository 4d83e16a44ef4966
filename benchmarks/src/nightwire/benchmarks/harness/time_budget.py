"""How many pairs of a scenario fit into what is left of the time, on a machine as slow as it was so far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nightwire.benchmarks.harness.preflight import minutes
from nightwire.benchmarks.harness.run import RunOptions, declared_size, size_of
from nightwire.benchmarks.model.scenario import Scenario


@dataclass
class EstimateRatio:
    """How long scenarios took beside their estimates. [s]"""

    taken: float = 0.0
    estimated: float = 0.0

    def learn(self, scenario: Scenario, wish: RunOptions, seconds: float) -> None:
        """Take in that *scenario* took so long."""
        self.taken += seconds
        self.estimated += estimate(scenario, wish)

    @property
    def factor(self) -> float:
        """By what estimates are multiplied."""
        return self.taken / self.estimated if self.estimated else 1.0


def estimate(scenario: Scenario, wish: RunOptions) -> float:
    """Return how long a run of *scenario* takes. [s]"""
    return scenario.needs(declared_size(size_of(scenario, wish))).seconds


def fit_pairs(
    scenario: Scenario,
    later: Sequence[Scenario],
    wish: RunOptions,
    pace: EstimateRatio,
    say: Callable[[str], None],
) -> RunOptions:
    """Return *wish* with as many pairs, of those that it has, as fit into *scenario*'s share of the time."""
    asked = size_of(scenario, wish).pairs
    whole = estimate(scenario, wish)
    share = wish.time_limit * whole / (whole + sum(estimate(one, wish) for one in later))
    choices = [replace(wish, pairs=pairs) for pairs in range(asked, 0, -1)]
    fit = next((one for one in choices if estimate(scenario, one) * pace.factor <= share), choices[-1])
    if fit is not choices[0]:
        left = f"{minutes(wish.time_limit)} are left for it and {len(later)} more"
        say(f"{scenario.name}: {fit.pairs} pairs instead of {asked}, for {left}")
    return fit
