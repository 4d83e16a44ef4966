"""Fewer pairs where time gets short, by what scenarios took so far."""

import pytest

from benchmarks.tests.sample import Pairwise
from nightwire.benchmarks.harness.options import RunOptions
from nightwire.benchmarks.harness.suite import EstimateRatio, fit_pairs

ONE = Pairwise()


def pairs(left: float, *, later: int = 0, pace: EstimateRatio | None = None) -> tuple[int | None, list[str]]:
    """Return the pairs that fit into *left* [s], and what a person is told."""
    said: list[str] = []
    wish = RunOptions(profile="full", time_limit=left)
    return fit_pairs(ONE, [ONE] * later, wish, pace or EstimateRatio(), said.append).pairs, said


@pytest.mark.parametrize(("left", "fit"), [(40.0, 4), (39.0, 3), (10.0, 1), (9.0, 1)])
def test_where_time_gets_short_there_are_fewer_pairs(left: float, fit: int) -> None:
    """What does not fit with one pair is left to be refused."""
    found, said = pairs(left)
    assert (found, len(said)) == (fit, int(fit < 4))


@pytest.mark.parametrize(("left", "fit"), [(120.0, 4), (119.0, 3), (60.0, 2), (59.0, 1), (9.0, 1)])
def test_what_comes_later_has_its_share_of_the_time(left: float, fit: int) -> None:
    assert pairs(left, later=2)[0] == fit


def test_who_is_told_reads_what_is_left_and_for_how_many() -> None:
    assert pairs(60.0, later=2)[1] == ["sample: 2 pairs instead of 4, for 60 s are left for it and 2 more"]


def test_a_machine_that_was_slow_so_far_is_taken_to_stay_so() -> None:
    pace = EstimateRatio()
    assert pace.factor == 1.0
    pace.learn(ONE, RunOptions(), 40.0)  # two pairs, twice what was estimated
    assert (pace.factor, pairs(40.0, pace=pace)[0]) == (2.0, 2)
    pace.learn(ONE, RunOptions(pairs=4), 5.0)
    assert (pace.factor, pairs(40.0, pace=pace)[0]) == (0.75, 4)
