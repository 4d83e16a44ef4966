"""Medians, spreads and ratios."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.benchmarks.model.statistics import Summary, interquartile, median, quantile, ratios, summary

values = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40)


@given(values)
def test_the_median_is_that_of_the_standard_library(some: list[float]) -> None:
    assert median(some) == pytest.approx(statistics.median(some))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_quarters_are_those_of_the_standard_library(some: list[float]) -> None:
    low, _middle, high = statistics.quantiles(some, n=4, method="inclusive")
    assert interquartile(some) == pytest.approx(high - low, abs=1e-6)


@given(values, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_stay_inside_and_rise(some: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert min(some) <= quantile(some, low) <= quantile(some, high) + 1e-9 <= max(some) + 1e-9


@given(values, st.floats(1e-3, 1e3))
def test_the_spread_does_not_depend_on_the_unit(some: list[float], factor: float) -> None:
    spread = summary([value * factor for value in some]).spread
    assert spread == pytest.approx(summary(some).spread, abs=1e-6, rel=1e-9)


@given(values)
def test_the_ratio_to_itself_is_one(some: list[float]) -> None:
    assert ratios(dict(enumerate(some)), dict(enumerate(some))) == [1.0] * len(some)


def test_a_single_run_has_no_spread() -> None:
    assert summary([3.0]) == Summary(3.0, 0.0)


@pytest.mark.parametrize(
    ("some", "unstable"), [([100, 100, 100, 115], False), ([100, 100, 140, 150], True), ([0, 0, 0, 1], True)]
)
def test_a_wide_quarter_range_is_unstable(some: list[float], unstable: bool) -> None:
    assert summary(some).unstable is unstable


def test_a_pair_without_its_other_half_or_with_a_baseline_of_zero_is_left_out() -> None:
    assert ratios({0: 2.0, 1: 9.0}, {0: 1.0, 1: 0.0}) == [2.0]
    assert ratios({1: 9.0, 2: 2.0}, {0: 3.0, 2: 1.0}) == [2.0]


def test_no_values_have_no_median() -> None:
    with pytest.raises(ValueError, match="0 values"):
        median([])
