"""Alternating pairs, and what is done around them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.tests.sample import Steps, samples
from nightwire.benchmarks import Kind, RunError
from nightwire.benchmarks._pairs import figure_pairs, order, run_pairs
from nightwire.benchmarks._watch import Watch


def test_the_first_runs_are_subject_baseline_baseline_subject() -> None:
    kinds = [kind.value for _pair, kind in order(3)]
    assert kinds == ["subject", "baseline", "baseline", "subject", "subject", "baseline"]


@given(st.integers(1, 30))
def test_each_pair_has_one_of_each_and_no_kind_is_favoured(pairs: int) -> None:
    runs = list(order(pairs))
    assert Counter(runs) == {(pair, kind): 1 for pair in range(pairs) for kind in Kind}
    earlier = [kind for _pair, kind in runs[::2]].count(Kind.SUBJECT)
    assert earlier - pairs // 2 in (0, 1)


def test_a_kind_has_no_more_runs_than_it_is_asked_for() -> None:
    kinds = [(pair, kind.value) for pair, kind in order(3, {Kind.BASELINE: 0, Kind.SUBJECT: 2})]
    assert kinds == [(0, "subject"), (1, "subject")]


def test_an_experiment_is_prepared_once_and_torn_down() -> None:
    steps = Steps()
    found = list(run_pairs(steps, 2, Watch()))
    assert steps.said == ["prepare", "subject", "baseline", "baseline", "subject", "tear down"]
    assert [(one.pair, one.kind.value) for one in found][-1] == (1, "subject")


@pytest.mark.parametrize("at", [1, 3])
def test_an_experiment_that_fails_is_torn_down(at: int) -> None:
    steps = Steps(fail_at=at)
    with pytest.raises(RunError, match="it broke"):
        list(run_pairs(steps, 2, Watch()))
    assert steps.said[-1] == "tear down"


def test_figures_are_put_together_pair_by_pair() -> None:
    mixed = sorted(samples((5.0, 6.0, 7.0)), key=lambda one: -one.pair)
    assert figure_pairs(mixed, "walk_seconds") == ({0: 5.0, 1: 6.0, 2: 7.0}, {0: 1.0, 1: 1.0, 2: 1.0})
    assert figure_pairs(mixed, "walks_per_second")[1] == {}
