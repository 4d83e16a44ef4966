"""What filters cost, from the batches that they judged."""

from nightwire.filters.decision.lane_costs import LEAST_ALERTS, MOST_ALERTS, LaneCosts
from nightwire.filters.model.messages import RangeCounts
from nightwire.filters.model.offsets import OffsetRange

ONE = ("ann/one", 1)


def counts(alerts: int, cost_us: int) -> list[RangeCounts]:
    """Return the counts of a batch of so many alerts."""
    work = OffsetRange("alerts.sim", 0, 0, alerts)
    return [RangeCounts(work, alerts, filters=[0], evaluated=[alerts], cpu_us=[alerts * cost_us])]


def test_a_cost_is_known_after_enough_alerts_without_those_of_the_first_batch() -> None:
    costs = LaneCosts()
    costs.add([ONE], counts(LEAST_ALERTS, 2_000))
    costs.add([ONE], counts(LEAST_ALERTS - 1, 5))
    assert costs.mean(ONE) is None
    costs.add([ONE], counts(1, 5))
    assert costs.mean(ONE) == 5
    assert costs.means() == {ONE: 5}


def test_what_it_cost_of_late_counts_most() -> None:
    costs = LaneCosts()
    for _ in range(50):
        costs.add([ONE], counts(MOST_ALERTS // 10, 1))
    for _ in range(50):
        costs.add([ONE], counts(MOST_ALERTS // 10, 101))
    mean = costs.mean(ONE)
    assert mean is not None
    assert mean > 95


def test_filters_that_are_no_more_are_forgotten() -> None:
    costs = LaneCosts()
    costs.add([ONE], counts(500, 5))
    assert costs.means() == {ONE: None}
    costs.forget([])
    assert costs.means() == {}
