"""How much time filters get, and when they are not tried again."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nightwire.filters.evaluation.cpu_budget import LEAST_CPU_S, LEAST_STOPPED_CPU_S, CpuBudget
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.sandbox import Outcome, RowFilter

LIVE = LiveFilter("me", "f", 1, "*", "", "keep")
LATE = Outcome(3, faults={1: "an odd one", 2: "took longer than 1 s (line 2)"}, late=True, cpu_s=1.0)


def budget_after(*outcomes: Outcome) -> CpuBudget:
    """Return the CPU budget of an engine in which a filter has had *outcomes*, one a batch."""
    budget = CpuBudget(2.0)
    for outcome in outcomes:
        budget.begin_batch()
        budget.record(RowFilter("me", "f", 1, "", "keep"), outcome)
    return budget


@pytest.mark.parametrize(
    ("outcomes", "rows", "cpu_s"),
    [
        ([], 10, 2.0),  # nothing is known of it
        ([Outcome(100, cpu_s=0.001)], 10, LEAST_CPU_S),
        ([Outcome(100, cpu_s=0.01)], 1000, 1.0),  # ten times what it usually takes
        ([Outcome(100, cpu_s=0.01), Outcome(100, cpu_s=0.001)], 1000, 1.0),
        ([Outcome(1000, cpu_s=0.1)], 10, 1.0),  # what is done once a batch does not grow with it
        ([Outcome(100, cpu_s=1.0)], 1000, 2.0),  # and never more than the budget
        ([LATE], 1000, LEAST_CPU_S),
        ([Outcome(100, cpu_s=0.001), LATE], 1000, LEAST_STOPPED_CPU_S),
        ([Outcome(100, cpu_s=0.01), LATE], 1000, 0.2),  # twice what it usually takes
        ([Outcome(100, cpu_s=0.01), LATE, Outcome(0, killed="crashed")], 1000, 0.2),
        # it behaves again
        ([Outcome(100, cpu_s=0.01), LATE, Outcome(100, cpu_s=0.001)], 1000, 1.0),
    ],
)
def test_a_filter_gets_what_it_usually_takes_and_little_once_it_was_stopped(
    outcomes: Sequence[Outcome], rows: int, cpu_s: float
) -> None:
    budget = budget_after(*outcomes)
    assert budget.cpu_s(LIVE, rows) == pytest.approx(cpu_s)
    assert budget.cpu_s(replace(LIVE, version=2), rows) == 2.0


def test_a_filter_that_had_to_be_stopped_is_not_tried_again_before_the_next_batch() -> None:
    budget = budget_after(LATE)
    assert budget.refusal(LIVE) == "took longer than 1 s (line 2); not tried again in this batch"
    assert budget.refusal(replace(LIVE, version=2)) is None
    assert budget.was_stopped(LIVE)
    budget.begin_batch()
    assert budget.refusal(LIVE) is None
    assert budget.was_stopped(LIVE)
    budget.record(RowFilter("me", "f", 1, "", "keep"), Outcome(10))
    assert not budget.was_stopped(LIVE)


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome(3, faults={2: "x"}), None),
        (LATE, "took longer than 1 s (line 2)"),
        (Outcome(3, late=True), "took too long"),
        (Outcome(3, late=True, killed="did not stop"), "did not stop"),
    ],
)
def test_an_outcome_says_why_its_filter_had_to_be_stopped(outcome: Outcome, why: str | None) -> None:
    assert outcome.stopped == why
