"""Alternating pairs, and what is done around them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.tests.sample import Steps, samples
from nightwire.benchmarks import Kind, RunError
from nightwire.benchmarks.harness.pairs import order, run_pairs
from nightwire.benchmarks.model.sample import Use, figure_pairs
from nightwire.benchmarks.resources.monitor import ResourceMonitor, UsageWindow


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
    found = list(run_pairs(steps, 2, ResourceMonitor()))
    assert steps.said == ["prepare", "subject", "baseline", "baseline", "subject", "tear down"]
    assert [(one.pair, one.kind.value) for one in found][-1] == (1, "subject")


@pytest.mark.parametrize("at", [1, 3])
def test_an_experiment_that_fails_is_torn_down(at: int) -> None:
    steps = Steps(fail_at=at)
    with pytest.raises(RunError, match="it broke"):
        list(run_pairs(steps, 2, ResourceMonitor()))
    assert steps.said[-1] == "tear down"


class Neighbours(ResourceMonitor):
    """A watch that sees others take these shares of the CPU, run by run."""

    def __init__(self, *shares: float) -> None:
        super().__init__()
        self._shares = list(shares)

    @contextmanager
    def window(self) -> Iterator[UsageWindow]:
        window = UsageWindow()
        yield window
        window.use = Use(1.0, self._shares.pop(0))


@pytest.mark.parametrize(
    ("shares", "tries", "others"),
    [((0.05, 0.0), 1, 0.05), ((0.3, 0.01, 0.0), 2, 0.01), ((0.3, 0.2, 0.4, 0.0), 3, 0.2)],
)
def test_a_disturbed_run_is_repeated_and_the_least_disturbed_counts(
    shares: tuple[float, ...], tries: int, others: float
) -> None:
    first, second = run_pairs(Steps(), 1, Neighbours(*shares), repeats=2)
    assert (first.tries, first.use.others) == (tries, others)
    assert (second.tries, second.use.others) == (1, 0.0)


def test_without_repeats_each_run_counts_as_it_came() -> None:
    found = list(run_pairs(Steps(), 1, Neighbours(0.9, 0.8)))
    assert [(one.tries, one.use.others) for one in found] == [(1, 0.9), (1, 0.8)]


def test_pairs_that_are_there_are_left_out() -> None:
    steps = Steps()
    found = list(run_pairs(steps, 3, ResourceMonitor(), known={0, 2}))
    assert [one.pair for one in found] == [1, 1]
    assert steps.said == ["prepare", "baseline", "subject", "tear down"]


def test_figures_are_put_together_pair_by_pair() -> None:
    mixed = sorted(samples((5.0, 6.0, 7.0)), key=lambda one: -one.pair)
    assert figure_pairs(mixed, "walk_seconds") == ({0: 5.0, 1: 6.0, 2: 7.0}, {0: 1.0, 1: 1.0, 2: 1.0})
    assert figure_pairs(mixed, "walks_per_second")[1] == {}
