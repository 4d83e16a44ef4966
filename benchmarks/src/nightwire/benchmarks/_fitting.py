"""How many pairs of a scenario fit into what is left of the time, on a machine as slow as it was so far."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from nightwire.benchmarks._guard import minutes
from nightwire.benchmarks._run import Wish, size_of, standing_for
from nightwire.benchmarks._scenario import Scenario

FAIR = 2
"""Pairs of each later scenario that go before a third one of this: without a second there is no spread."""


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
    """Return *wish* with as many pairs, of those that it has, as leave *later* scenarios their time."""
    asked = size_of(scenario, wish).pairs

    def fits(pairs: int, each: int) -> bool:
        seconds = estimate(scenario, wish, pairs) + sum(estimate(one, wish, each) for one in later)
        return seconds * pace.factor <= wish.time_limit

    pairs = next((own for own, each in _choices(asked) if fits(own, each)), 1)
    if pairs < asked:
        left = f"{minutes(wish.time_limit)} are left for it and {len(later)} more"
        say(f"{scenario.name}: {pairs} pairs instead of {asked}, for {left}")
    return replace(wish, pairs=pairs)


def _choices(asked: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of one's own and of each that comes later, the best first."""
    yield from ((own, FAIR) for own in range(asked, FAIR - 1, -1))
    yield from ((own, 1) for own in range(min(asked, FAIR), 0, -1))
