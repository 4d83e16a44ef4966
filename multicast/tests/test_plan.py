"""Which conditions get a channel: gain, hysteresis, what people made, and how it is measured."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from nightwire.core.channels import ChannelMapping
from nightwire.multicast.planning import Demand, Settings, Traffic, demand_of, name_of, plan
from nightwire.schemas import SIM_ALERT_ID, AlertDecoder, Codec, SchemaRegistry, sim_alert_schema
from nightwire.schemas.wire import frame
from tests._alerts import empty

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
GROUPS = [f"239.10.0.{number}:5400" for number in range(1, 4)]
SETTINGS = Settings(groups=GROUPS, make=1000.0, keep=500.0)


def demand(
    receivers: dict[str, int], shares: dict[str, float], covered: dict[str, str] | None = None
) -> Demand:
    """Return a demand at 100 events/s of 100 bytes; each condition covers itself and *covered*."""
    below = {one: frozenset([one, *(covered or {}).get(one, "")]) & receivers.keys() for one in shares}
    return Demand(100.0, 100.0, receivers, shares, below)


def made(
    condition: str, group: str | None = GROUPS[0], *, age: float = 3600.0, automatic: bool = True
) -> ChannelMapping:
    """Return a channel of so many seconds' age."""
    when = NOW - timedelta(seconds=age)
    return ChannelMapping(
        "alerts.sim", name_of(condition), condition, "planner", when, group=group, automatic=automatic
    )


def planned(
    now: list[ChannelMapping], wanted: Demand, settings: Settings = SETTINGS
) -> dict[str, tuple[str, str | None]]:
    """Return what is done about each condition, and the group that it has then."""
    found = plan(now, wanted, settings, "alerts.sim", "planner", NOW)
    return {one.mapping.condition: (one.action, one.mapping.group) for one in found}


def test_what_spares_most_is_made_first_and_what_spares_little_is_not() -> None:
    wanted = demand({"a": 1, "b": 10, "c": 1}, {"a": 0.1, "b": 0.5, "c": 0.95})
    (first, second) = plan([], wanted, SETTINGS, "alerts.sim", "planner", NOW)
    assert (first.mapping.condition, first.spared, first.receivers) == ("b", 50_000.0, 10)
    assert (second.mapping.condition, second.spared) == ("a", pytest.approx(9_000.0))
    assert [one.mapping.group for one in (first, second)] == GROUPS[:2]
    assert first.mapping.automatic


def test_below_a_channel_another_has_to_spare_beside_it() -> None:
    """``b`` lies in ``a``: one of nine tenths is spared by ``a`` already."""
    shares = {"a": 0.1, "b": 0.05}
    assert planned([], demand({"a": 1, "b": 1}, shares, {"a": "b"})).keys() == {"a"}
    assert planned([], demand({"a": 1, "b": 10}, shares, {"a": "b"})).keys() == {"a", "b"}


def test_one_that_stands_has_to_spare_less_than_one_that_is_new() -> None:
    wanted = demand({"a": 1}, {"a": 0.93})  # it spares 700 bytes/s
    assert planned([], wanted) == {}
    assert planned([made("a")], wanted) == {"a": ("keep", GROUPS[0])}
    assert planned([made("a")], demand({"a": 1}, {"a": 0.96})) == {"a": ("take out", None)}


def test_a_young_one_is_not_taken_out_though_nobody_wants_it() -> None:
    wanted = demand({}, {"a": 0.1})
    assert planned([made("a", age=1.0)], wanted) == {"a": ("keep", GROUPS[0])}
    assert planned([made("a")], wanted) == {"a": ("take out", None)}
    more = demand({"b": 1}, {"a": 0.1, "b": 0.93})  # too little for a new one
    assert planned([made("a", age=1.0)], more) == {"a": ("keep", GROUPS[0])}


def test_one_that_was_taken_out_is_forgotten_when_all_have_heard() -> None:
    wanted = demand({}, {"a": 0.1})
    assert planned([made("a", group=None, age=1.0)], wanted) == {}
    assert planned([made("a", group=None)], wanted) == {"a": ("forget", None)}


def test_what_people_made_stays_and_counts() -> None:
    by_hand = made("wide", age=0.0, automatic=False)
    wanted = demand({"a": 1}, {"a": 0.1, "wide": 0.15}, {"wide": "a"})
    assert planned([by_hand], wanted) == {}
    assert planned([], wanted) == {"a": ("make", GROUPS[0])}


def test_there_are_no_more_than_asked_for_and_than_groups() -> None:
    wanted = demand(dict.fromkeys("abcde", 1), dict.fromkeys("abcde", 0.1))
    assert len(planned([], wanted)) == len(GROUPS)
    assert len(planned([], wanted, replace(SETTINGS, most=2))) == 2
    assert len(planned([], wanted, replace(SETTINGS, groups=(), derived=True))) == 5


def test_a_plan_that_was_applied_is_kept() -> None:
    wanted = demand({"a": 3, "b": 10, "c": 1}, {"a": 0.1, "b": 0.5, "c": 0.2})
    first = [one.mapping for one in plan([], wanted, SETTINGS, "alerts.sim", "planner", NOW)]
    assert len(first) == 3
    assert {action for action, _ in planned(first, wanted).values()} == {"keep"}


def test_where_two_planners_have_given_a_group_twice_one_channel_gets_another() -> None:
    wanted = demand({"a": 3, "b": 10}, {"a": 0.1, "b": 0.5})
    now = [made("a"), made("b"), made("c", GROUPS[1], automatic=False)]
    found = planned(now, wanted)
    assert {group for _, group in found.values()} == {GROUPS[0], GROUPS[2]}
    assert sorted(action for action, _ in found.values()) == ["keep", "make"]


def alert(flux: float) -> bytes:
    """Return an alert of such a flux."""
    found = empty(sim_alert_schema())
    found["diaSource"] |= {"psfFlux": flux, "psfFluxErr": 1.0, "band": "r"}
    return frame(SIM_ALERT_ID, Codec(sim_alert_schema()).encode(found))


def test_who_tightens_a_template_counts_to_it_and_to_what_is_a_root_below_it() -> None:
    """Two thousand tighten ten templates: judged are these, and two levels below each."""
    flux = "diaSource.psfFlux >"
    wanted = [f"{flux} {1000 * (number % 10)} AND band = 'r'" for number in range(10)]
    wanted += [f"{flux} {1000 * (number % 10) + number} AND band = 'r'" for number in range(10, 2000)]
    wanted += ["psfFlux <", "band = 'g' OR magnitude < 3"]
    traffic = Traffic(50.0, [alert(flux_) for flux_ in range(500, 10_500, 1000)])
    found = demand_of(
        traffic, wanted, [f"{flux} 5000"], "sim", AlertDecoder(SchemaRegistry(None)), whole=True
    )
    assert found.receivers.total() == 2001  # type: ignore[attr-defined]  # all but what is no condition
    assert len(found.receivers) < 0.02 * len(wanted)
    assert found.shares[wanted[0]] == 1.0
    assert found.shares[f"{flux} 5000"] == 0.5
    assert wanted[0] not in found.covered[f"{flux} 5000"]
    assert found.covered[wanted[0]] >= {one for one in found.receivers if one.startswith(flux)}
    assert found.size == len(traffic.values[0])
