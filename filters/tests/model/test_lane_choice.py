"""Which lane judges which filter."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nightwire.filters.model.lane_choice import QUICK_US, LaneLoad, assigned, first_lane, wanted_lanes
from nightwire.filters.model.live_filter import QUICK, SLOW, LiveFilter

ONE = LiveFilter("ann", "one", 1, "sim", "def keep(alert): return 1", "keep")
ENOUGH = 1e9


def filters(owner: str, *costs: float, lane: str = QUICK) -> list[LiveFilter]:
    """Return filters of an owner that cost so much for an alert. [µs]"""
    return [
        replace(ONE, owner=owner, name=f"f{number}", cost_us=cost, lane=lane)
        for number, cost in enumerate(costs)
    ]


def quick(found: Sequence[LiveFilter], most_us: float = ENOUGH) -> set[str]:
    """Return the filters that should be quick."""
    return {key for (key, _), lane in wanted_lanes(found, {}, most_us).items() if lane == QUICK}


@pytest.mark.parametrize(
    ("cost_us", "program", "lane"),
    [
        (None, "", SLOW),  # code that was not tried
        (None, "[]", QUICK),  # its language bounds it
        (3.0, "", QUICK),
        (QUICK_US, "", QUICK),
        (QUICK_US + 1, "", SLOW),
        (QUICK_US + 1, "[]", SLOW),
    ],
)
def test_a_filter_begins_where_its_trial_says(cost_us: float | None, program: str, lane: str) -> None:
    assert first_lane(replace(ONE, cost_us=cost_us, program=program)) == lane


def test_the_cheapest_filters_of_an_owner_are_quick_and_no_neighbour_loses_by_it() -> None:
    found = [*filters("ann", *[20.0] * 50), *filters("bob", 1.0, 2_000.0)]
    assert quick(found) == {"ann/f0", "ann/f1", "bob/f0"}


def test_where_all_would_be_too_much_owners_have_less_and_all_have_the_same() -> None:
    found = [one for owner in "abcdefghij" for one in filters(owner, 4.0, 20.0)]
    assert len(quick(found, most_us=1_000.0)) == 20
    # 4 µs and its process each are 50 µs together
    assert quick(found, most_us=60.0) == {f"{owner}/f0" for owner in "abcdefghij"}
    assert quick(found, most_us=20.0) == set()


def test_what_is_measured_counts_and_not_the_trial() -> None:
    (one,) = filters("ann", 1.0)
    assert wanted_lanes([one], {one.id: 500.0}, ENOUGH) == {one.id: SLOW}
    assert wanted_lanes([one], {one.id: None}, ENOUGH) == {one.id: QUICK}


def test_a_filter_at_the_limit_does_not_move_to_and_fro() -> None:
    assert quick(filters("ann", 0.8 * QUICK_US)) == {"ann/f0"}
    assert quick(filters("ann", 0.8 * QUICK_US, lane=SLOW)) == set()
    assert quick(filters("ann", 0.5 * QUICK_US, lane=SLOW)) == {"ann/f0"}


def test_a_filter_moves_when_it_can_and_a_new_version_stays_where_the_old_one_is() -> None:
    old, new = replace(ONE, lane=SLOW), replace(ONE, version=2, cost_us=1.0)
    current, wanted = {ONE.key: SLOW}, {old.id: QUICK}
    assert assigned([old], current, wanted, lambda *_: False) == [old]
    assert assigned([old], current, wanted, lambda *_: True) == [replace(old, lane=QUICK)]
    assert assigned([new], current, {}, lambda *_: False) == [replace(new, lane=SLOW)]
    assert assigned([new], {}, {}, lambda *_: False) == [replace(new, lane=QUICK)]


@pytest.mark.parametrize(
    ("owners", "text"),
    [
        ({}, "takes it 18.0 s of CPU; expect its alerts 18 s after the quick ones'"),
        ({"bob": 10.0}, "expect its alerts 18 s"),  # he takes little: most of it is ann's
        ({"bob": 9_999.0}, "expect its alerts 36 s"),
        ({"ann": 3_000.0}, "with your other slow filters 48 s, of which you have 39 s: 19% of the alerts"),
    ],
)
def test_a_forecast_knows_what_others_ask(owners: dict[str, float], text: str) -> None:
    assert text in LaneLoad(1, owners).forecast("ann", 1_800.0)


def test_a_filter_is_quick_where_it_fits_beside_its_owners_cheaper_ones() -> None:
    load = LaneLoad(1, quick={"ann": [30.0, 45.0], "bob": [50.0]})
    assert load.is_quick("ann", 15.0)  # the dearer ones give way
    assert not load.is_quick("ann", 31.0)
    assert load.is_quick("cleo", QUICK_US)
