"""How many pairs of a scenario fit into what is left of the time, on a machine as slow as it was so far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nightwire.benchmarks._guard import minutes
from nightwire.benchmarks._run import Wish, size_of, standing_for
from nightwire.benchmarks._scenario import Scenario


@dataclass
class Pace:
    """How long scenarios took beside their estimates. [s]"""

    taken: float = 0.0
    estimated: float = 0.0

    def learn(self, scenario: Scenario, wish: Wish, seconds: float) -> None:
        """Take in that *scenario* took so long."""
        self.taken += seconds
        self.estimated += estimate(scenario, wish)

    @property
    def factor(self) -> float:
        """By what estimates are multiplied."""
        return self.taken / self.estimated if self.estimated else 1.0


def estimate(scenario: Scenario, wish: Wish, at_most: int | None = None) -> float:
    """Return how long a run of *scenario* takes, with *at_most* so many of its pairs. [s]"""
    size = standing_for(size_of(scenario, wish))
    pairs = size.pairs if at_most is None else min(size.pairs, at_most)
    return scenario.needs(replace(size, pairs=pairs)).seconds


def fitting(
    scenario: Scenario, later: Sequence[Scenario], wish: Wish, pace: Pace, say: Callable[[str], None]
) -> Wish:
    """Return *wish* with as many pairs, of those that it has, as fit into *scenario*'s share of the time."""
    asked = size_of(scenario, wish).pairs
    whole = estimate(scenario, wish)
    share = wish.time_limit * whole / (whole + sum(estimate(one, wish) for one in later))
    fit = (pairs for pairs in range(asked, 0, -1) if estimate(scenario, wish, pairs) * pace.factor <= share)
    pairs = next(fit, 1)
    if pairs < asked:
        left = f"{minutes(wish.time_limit)} are left for it and {len(later)} more"
        say(f"{scenario.name}: {pairs} pairs instead of {asked}, for {left}")
    return replace(wish, pairs=pairs)
