"""How many pairs of a scenario fit into the time left, on a machine as slow as it was so far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nightwire.benchmarks.harness.options import RunOptions, estimate, size_of
from nightwire.benchmarks.harness.preflight import minutes
from nightwire.benchmarks.model.scenario import Scenario


@dataclass
class EstimateRatio:
    """How long scenarios took beside their estimates. [s]"""

    taken: float = 0.0
    estimated: float = 0.0

    def learn(self, scenario: Scenario, options: RunOptions, seconds: float) -> None:
        """Take in that *scenario* took so long."""
        self.taken += seconds
        self.estimated += estimate(scenario, options)

    @property
    def factor(self) -> float:
        """By what estimates are multiplied."""
        return self.taken / self.estimated if self.estimated else 1.0


def fit_pairs(
    scenario: Scenario,
    later: Sequence[Scenario],
    options: RunOptions,
    pace: EstimateRatio,
    say: Callable[[str], None],
) -> RunOptions:
    """Return *options* with as many of its pairs as fit into *scenario*'s share of the time."""
    asked = size_of(scenario, options).pairs
    whole = estimate(scenario, options)
    share = options.time_limit * whole / (whole + sum(estimate(one, options) for one in later))
    choices = [replace(options, pairs=pairs) for pairs in range(asked, 0, -1)]
    fit = next((one for one in choices if estimate(scenario, one) * pace.factor <= share), choices[-1])
    if fit is not choices[0]:
        left = f"{minutes(options.time_limit)} are left for it and {len(later)} more"
        say(f"{scenario.name}: {fit.pairs} pairs instead of {asked}, for {left}")
    return fit
