"""The scenario `growth`: the arithmetic of its exponents, and small curves against real brokers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.model.scenario import Context, Size
from nightwire.benchmarks.scenarios.filters.visits import MIXTURES, Visits
from nightwire.benchmarks.scenarios.growth.curve import Cost, Curve, exponent, exponents, figures
from nightwire.benchmarks.scenarios.growth.readers import (
    CLIENTS,
    EVENTS,
    Consumers,
    GrowthEnvironment,
    Subscribers,
    events_for,
)
from nightwire.benchmarks.scenarios.growth.scenario import FILTERS, POINTS, Alerts, Filters, GrowthScenario

NAMES = {figure.name for figure in GrowthScenario().figures}
counts = st.sets(st.integers(1, 1_000_000), min_size=2)


@given(counts, st.floats(-3, 3), st.floats(1e-3, 1e3))
def test_the_exponent_of_a_power_is_its_own(some: set[int], power: float, factor: float) -> None:
    assert exponent({count: factor * count**power for count in some}) == pytest.approx(power, abs=1e-6)


@given(st.dictionaries(st.integers(1, 1_000_000), st.floats(1e-3, 1e6), min_size=2), st.floats(1e-3, 1e3))
def test_a_unit_changes_no_exponent_and_another_factor_of_the_count_adds_one(
    costs: dict[int, float], factor: float
) -> None:
    slope = exponent(costs)
    assert slope is not None
    assert exponent({count: factor * cost for count, cost in costs.items()}) == pytest.approx(slope, abs=1e-6)
    more = exponent({count: count * cost for count, cost in costs.items()})
    assert more == pytest.approx(slope + 1, abs=1e-6)


@given(st.dictionaries(st.integers(1, 1000), st.just(0.0)), st.integers(1001, 2000))
def test_one_point_has_no_slope_nor_have_costs_that_are_not_known(
    unknown: dict[int, float], count: int
) -> None:
    assert exponent({**unknown, count: 1.0}) is None


def test_alerts_are_taken_together_and_all_else_by_itself() -> None:
    """Ten times as large a visit takes ten times as long: 1 together, 0 each."""
    costs = {100: Cost(100, 1.0, 0.5), 1_000: Cost(1_000, 10.0, 5.0)}
    found = figures("alerts", costs)
    together, each = (exponents("alerts", costs, found, whole=whole) for whole in (True, False))
    assert [together["alerts_exponent"], together["alerts_cpu_exponent"]] == pytest.approx([1.0, 1.0])
    assert each["alerts_exponent"] == pytest.approx(0.0)
    assert figures("alerts", costs)["alerts_100_us"] == pytest.approx(10_000)
    assert figures("alerts", costs)["alerts_1000_cpu_us"] == pytest.approx(5_000)


def test_a_cost_that_is_not_known_is_no_figure() -> None:
    costs = {1: Cost(10, 1.0), 10: Cost(10, 2.0)}
    assert figures("consumers", costs).keys() == {"consumers_1_us", "consumers_10_us"}
    assert exponents("consumers", costs, figures("consumers", costs), whole=False).keys() == {
        "consumers_exponent"
    }


def test_every_point_of_both_profiles_is_reported() -> None:
    for plan in POINTS.values():
        for axis, points in plan.items():
            assert {f"{axis}_{count}_{what}" for count in points for what in ("us", "cpu_us")} <= NAMES
            assert list(points) == [10**power for power in range(*span(points))]
    assert {*POINTS["full"]["filters"], FILTERS} <= MIXTURES.keys()


def span(points: Sequence[int]) -> tuple[int, int]:
    """Return the exponent of ten of the first of *points*, and the one after the last's."""
    first = len(str(points[0])) - 1
    return first, first + len(points)


@given(st.integers(1, 100_000))
def test_each_point_has_some_events_and_not_too_many(subscribers: int) -> None:
    fewest, most = EVENTS
    assert fewest <= events_for(subscribers) <= most
    assert events_for(subscribers + 1) <= events_for(subscribers)


@pytest.fixture
def context(kafka: str, tmp_path: Path) -> Context:
    """Return that of a small run on the tests' Kafka."""
    return Context(tmp_path, Size(40, 1, 1.0), kafka)


@pytest.fixture
def environment(context: Context) -> Iterator[GrowthEnvironment]:
    """Yield what the curves stand on."""
    environment = GrowthEnvironment(context)
    yield environment
    environment.close()


@pytest.mark.proof
@pytest.mark.kafka
@pytest.mark.slow
def test_small_crowds_are_served_and_measured(context: Context, environment: GrowthEnvironment) -> None:
    subscribers, consumers = (
        Subscribers(context, (1, 10), environment),
        Consumers(context, (1, 2), environment),
    )
    subscribers.prepare()
    taken = [Sample(subscribers.name, kind, 0, subscribers.run_once(kind)) for kind in Kind]
    taken.append(Sample(consumers.name, Kind.SUBJECT, 0, consumers.run_once(Kind.SUBJECT)))
    for curve, one in zip((subscribers, subscribers, consumers), taken, strict=True):
        adds_up(curve, one.kind, one.figures)
    assert subscribers.note(taken).startswith("subscribers (time ")
    assert consumers.note(taken) == ""
    assert [line.name for line in next(subscribers.drawings(taken)).lines] == ["nightwire", "raw librdkafka"]
    assert [line.name for line in next(consumers.drawings(taken)).lines] == ["nightwire"]
    assert Subscribers(context, (), environment).cost(Kind.BASELINE, CLIENTS + 1) is None


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_small_visits_are_judged_and_measured(tmp_path: Path) -> None:
    """The engine is the light one, which starts sooner; it must have its own Kafka."""
    context = Context(tmp_path, Size(60, 1, 1.0))
    environment = GrowthEnvironment(context, light=True)
    visits = Visits(environment.engine, make_pool(60))
    try:
        for curve in (
            Alerts(context, (20, 200), environment.engine, visits),
            Filters(context, (1, 10), environment.engine, visits),
        ):
            curve.prepare()
            for kind in Kind:
                found = curve.run_once(kind)
                adds_up(curve, kind, found)
                assert [name for name in found if "cpu" in name]
    finally:
        environment.close()


def adds_up(curve: Curve, kind: Kind, found: dict[str, float]) -> None:
    """Assert that each point has a cost, and our curve an exponent."""
    points = [name for name in found if "exponent" not in name]
    assert all(found[name] > 0 for name in points)
    assert len([name for name in points if "cpu" not in name]) == 2
    assert (f"{curve.axis}_exponent" in found) == (kind is Kind.SUBJECT)
