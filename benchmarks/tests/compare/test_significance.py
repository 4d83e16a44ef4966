"""Whether a figure changed, given the noise."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.benchmarks import Better
from nightwire.benchmarks.compare.significance import Verdict, assess, p_value, ranges_apart

pytestmark = pytest.mark.slow

values = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9)
several = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=9)
SWAPPED = {
    Verdict.SLOWER: Verdict.QUICKER,
    Verdict.QUICKER: Verdict.SLOWER,
    Verdict.SAME: Verdict.SAME,
    Verdict.UNKNOWN: Verdict.UNKNOWN,
}


@given(values, values, st.sampled_from(Better))
def test_swapping_both_swaps_slower_and_quicker(
    some: list[float], others: list[float], better: Better
) -> None:
    one, other = assess(some, others, better), assess(others, some, better)
    assert (other.verdict, other.why) == (SWAPPED[one.verdict], one.why)


@given(values, values)
def test_what_is_better_upwards_is_judged_the_other_way_round(some: list[float], others: list[float]) -> None:
    assert assess(some, others, Better.HIGHER).verdict is SWAPPED[assess(some, others, Better.LOWER).verdict]


@given(values, st.sampled_from(Better))
def test_nothing_changed_against_itself(some: list[float], better: Better) -> None:
    assert assess(some, some, better).verdict in (Verdict.SAME, Verdict.UNKNOWN)


@given(values, values, st.integers(-8, 8))
def test_the_unit_does_not_matter(some: list[float], others: list[float], power: int) -> None:
    scaled = [[value * 2.0**power for value in side] for side in (some, others)]
    assert assess(*scaled, Better.LOWER) == assess(some, others, Better.LOWER)


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_the_runs_does_not_matter(some: list[float], dice: random.Random) -> None:
    mixed = dice.sample(some, len(some))
    assert assess([1.0, 1.1, 1.2], mixed, Better.LOWER) == assess([1.0, 1.1, 1.2], some, Better.LOWER)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(2.0, Verdict.SLOWER), (1.2, Verdict.SLOWER), (1.03, Verdict.SAME), (1 / 1.2, Verdict.QUICKER)],
)
def test_a_steady_figure_shows_a_change(count: int, factor: float, verdict: Verdict) -> None:
    steady = [1.0 + 0.01 * turn for turn in range(count)]
    assert assess(steady, [factor * value for value in steady], Better.LOWER).verdict is verdict


def test_a_change_that_is_larger_than_wide_noise_is_seen_and_a_smaller_is_not_judged() -> None:
    wide = [1.0, 1.2, 1.4]
    assert assess(wide, [10.0, 12.0, 14.0], Better.LOWER).verdict is Verdict.SLOWER
    hidden = assess(wide, [1.1, 1.4, 1.7], Better.LOWER)
    assert (hidden.verdict, hidden.why) == (Verdict.UNKNOWN, "unstable")


@pytest.mark.parametrize(("some", "others"), [([1.0], [9.0, 9.0, 9.0]), ([1.0, 1.0], [9.0]), ([1.0], [1.0])])
def test_of_one_run_nothing_is_said(some: list[float], others: list[float]) -> None:
    said = assess(some, others, Better.LOWER)
    assert (said.verdict, said.why) == (Verdict.UNKNOWN, "one run")


def test_a_figure_that_was_nothing_and_is_something_has_changed() -> None:
    nothing = [0.0] * 3
    assert assess(nothing, nothing, Better.LOWER).verdict is Verdict.SAME
    assert assess(nothing, [4.0, 4.0, 4.0], Better.LOWER).verdict is Verdict.SLOWER


def test_the_least_difference_is_what_one_asks_for() -> None:
    some, others = [1.0, 1.001, 1.002], [1.05, 1.051, 1.052]
    assert assess(some, others, Better.LOWER).verdict is Verdict.SAME
    assert assess(some, others, Better.LOWER, least=0.01).verdict is Verdict.SLOWER


def test_the_rank_test_is_that_of_the_tables() -> None:
    """Mann and Whitney (1947): four against four, U = 0 has a chance of 2/70; U = 1 of 4/70."""
    assert p_value([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert p_value([1, 2, 3, 5], [4, 6, 7, 8]) == pytest.approx(4 / 70)
    assert p_value([1, 2, 3], [4, 5, 6]) == pytest.approx(2 / 20)
    assert p_value([1, 1, 1], [1, 1, 1]) == 1.0


@given(several, several)
def test_a_chance_is_one_and_is_symmetric(some: list[float], others: list[float]) -> None:
    assert 0.0 < p_value(some, others) <= 1.0
    assert p_value(some, others) == p_value(others, some)
    assert ranges_apart(some, others) == ranges_apart(others, some)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("noise", [0.03, 0.06, 0.12, 0.25])
def test_runs_of_the_same_code_seldom_differ(count: int, noise: float) -> None:
    """Noise as benchmarks have it: log-normal, and one run in ten delayed by as much as a half."""
    false = sum(_false_alarm(random.Random(seed), count, noise) for seed in range(1000))
    assert false / 1000 <= 0.02


def _false_alarm(dice: random.Random, count: int, noise: float) -> bool:
    def run() -> float:
        return dice.lognormvariate(0.0, noise) * (1.0 + dice.random() / 2 * (dice.random() < 0.1))

    both = [[run() for _ in range(count)] for _ in range(2)]
    return assess(*both, Better.LOWER).verdict in (Verdict.SLOWER, Verdict.QUICKER)


@pytest.mark.parametrize(("count", "factor"), [(3, 1.5), (5, 1.25), (9, 1.15)])
def test_a_change_that_matters_is_mostly_seen(count: int, factor: float) -> None:
    seen = 0
    for seed in range(400):
        dice = random.Random(seed)
        before = [dice.lognormvariate(0.0, 0.05) for _ in range(count)]
        after = [factor * dice.lognormvariate(0.0, 0.05) for _ in range(count)]
        seen += assess(before, after, Better.LOWER).verdict is Verdict.SLOWER
    assert seen / 400 >= 0.9
