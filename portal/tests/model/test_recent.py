"""The newest alerts, by id, object and place."""

from typing import Any

import pytest

from nightwire.portal.model import RecentAlerts, Row
from nightwire.portal.model import recent as recent_module
from nightwire.portal.model.recent import FILTERS_FACTOR
from nightwire.portal.model.rows import iso, to_utc
from nightwire.portal.records import ENTRY_BYTES, StampCache
from portal.tests.sample import names

SIM = "alerts.sim"


def row(offset: int, **more: Any) -> Row:
    facts: dict[str, Any] = {
        "topic": SIM, "partition": 0, "offset": offset, "written": float(offset), "survey": "sim",
        "id": str(offset), "object": None, "mjd": 61_000.0 + offset, "ra": 10.0, "dec": 0.0, "band": "r",
        "magnitude": 20.0, "snr": 9.0, "stamps": (), "source": SIM,
    }  # fmt: skip
    return Row(**facts | more)


def test_the_newest_are_kept_and_the_oldest_are_forgotten_by_every_name() -> None:
    recent = RecentAlerts(3)
    recent.add(row(n, object="x") for n in range(5))
    assert names(recent.newest([SIM], 10)) == ["4", "3", "2"]
    assert recent.named("sim", "0", [SIM]) == []
    assert names(recent.named("sim", "x", [SIM])) == ["4", "3", "2"]
    recent.add(row(n, object="y") for n in range(5, 9))
    assert recent.named("sim", "x", [SIM]) == []


def test_what_is_read_again_counts_once() -> None:
    recent = RecentAlerts(10)
    recent.add([row(1), row(2)])
    recent.add([row(2), row(1), row(3), row(1, partition=1, id="other")])
    assert names(recent.newest([SIM], 10)) == ["other", "3", "2", "1"]


def test_a_topic_that_is_made_anew_is_shown_and_its_past_forgotten() -> None:
    recent, stamps = RecentAlerts(10), StampCache()
    stamps.strips = StampCache()
    recent.add([row(n) for n in range(5)] + [row(3, partition=1, id="other")])
    stamps.add((SIM, 0, 0), {"science": b"old"})
    stamps.strips.add((SIM, 0, 0), {"strip": b"old"})
    recent.add([row(0, id="new"), row(1, id="newer")])
    assert names(recent.newest([SIM], 10)) == ["newer", "new", "other"]
    assert recent.named("sim", "4", [SIM]) == []
    stamps.add((SIM, 0, 0), {"science": b"new"})
    assert stamps.get((SIM, 0, 0)) == {"science": b"new"}
    assert stamps.strips.get((SIM, 0, 0)) is None


def test_what_was_forgotten_is_not_told_again_when_reading_begins_again() -> None:
    recent = RecentAlerts(3)
    recent.add([row(n) for n in range(9)])
    recent.expect_repeats()
    recent.add([row(n) for n in range(10)])
    assert (names(recent.newest([SIM], 10)), recent.newest_number([SIM])) == (["9", "8", "7"], 10)
    recent.expect_repeats()
    recent.add([row(8, id="new")])  # where another is known: the topic was made anew
    recent.add([row(0, id="newest")])  # and once more, under one reader
    assert names(recent.newest([SIM], 10)) == ["newest"]


def test_topics_of_others_are_not_seen() -> None:
    recent = RecentAlerts(10)
    recent.add([row(1, object="x"), row(7, topic="filter.ann.a", object="x", id="1")])
    assert names(recent.newest([], 10)) == []
    assert recent.filters(row(1), [SIM]) == []
    assert recent.filters(row(1), [SIM, "filter.ann.a"]) == ["filter.ann.a"]
    (only,) = recent.named("sim", "x", [SIM, "filter.ann.a"])
    assert only.topic == SIM  # the survey's own record stands for its copies
    assert recent.any_named("x", ["filter.ann.a"])[0].topic == "filter.ann.a"
    assert recent.any_named("x", []) == []


def test_numbers_tell_nobody_how_much_passes_the_filter_of_another() -> None:
    recent, filtered = RecentAlerts(10), "filter.ann.a"
    recent.add([row(1), row(1, topic=filtered), row(2, topic=filtered), row(2)])
    assert [one.number for one in recent.newest([SIM], 9)] == [2, 1]
    assert [one.number for one in recent.newest([filtered], 9)] == [2, 1]
    recent.add([row(3, topic=filtered)])
    assert [recent.newest_number([one]) for one in (SIM, filtered)] == [2, 3]
    assert recent.count_read == 5


def test_pages_and_live_lists_go_on_where_they_were() -> None:
    recent = RecentAlerts(100)
    recent.add(row(n) for n in range(10))
    first = recent.newest([SIM], 4)
    assert names(recent.newest([SIM], 4, before=first[-1].number)) == ["5", "4", "3", "2"]
    rows, more = recent.since(first[0].number - 6, [SIM], 4)
    assert (names(rows), more) == (["9", "8", "7", "6"], 2)
    assert recent.since(recent.newest_number([SIM]), [SIM], 4) == ([], 0)


@pytest.mark.parametrize("number", [1, 5, 500, 10**9])
def test_who_goes_far_back_keeps_nobody_waiting(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recent, compared = RecentAlerts(1000), list[int]()
    recent.add(row(n) for n in range(2000))
    numbers = [one.number for one in recent.newest([SIM], 2000)]
    monkeypatch.setattr(
        recent_module, "_newest_first", lambda one: compared.append(one.number) or -one.number
    )
    older, (newer, more) = recent.newest([SIM], 4, before=number), recent.since(number, [SIM], 4)
    assert [one.number for one in older] == [one for one in numbers if one < number][:4]
    assert [one.number for one in newer] == [one for one in numbers if one > number][:4]
    assert len(newer) + more == sum(one > number for one in numbers)
    assert len(compared) < 20


def test_a_cone_crosses_the_pole_and_the_meridian() -> None:
    recent = RecentAlerts(100)
    places = {"a": (359.9999, 0.0), "b": (0.0001, 0.0), "c": (180.0, 89.9999), "d": (50.0, 10.0)}
    recent.add(row(n, id=name, ra=ra, dec=dec) for n, (name, (ra, dec)) in enumerate(places.items()))
    recent.add([row(9, id="e", ra=None, dec=None)])
    assert {one.id for _, one in recent.near(0.0, 0.0, 1 / 3600, [SIM], 9)} == {"a", "b"}
    ((distance, found),) = recent.near(0.0, 89.9999, 1 / 3600, [SIM], 9)
    assert (found.id, round(distance * 3600, 2)) == ("c", 0.72)


def test_dates_no_calendar_has_are_no_dates() -> None:
    assert (iso(61_369.5), iso(1e12), iso(None)) == ("2026-11-25T12:00:00Z", None, None)
    utc = to_utc([61_000.0, float("nan"), 1e300])
    assert round((61_000.0 - utc[0]) * 86_400) == 37
    assert [str(one) for one in utc[1:]] == ["nan", "nan"]


def test_a_thousand_filters_are_bounded_together() -> None:
    recent, topics = RecentAlerts(10), [f"filter.ann.f{n}" for n in range(200)]
    recent.add(row(n) for n in range(20))
    recent.add(row(n, topic="filter.ann.many") for n in range(20))
    recent.add(row(1, topic=topic, id="one") for topic in topics[: FILTERS_FACTOR * 10 - 5])
    assert (len(recent), len(recent.newest(["filter.ann.many"], 99))) == (10 + FILTERS_FACTOR * 10, 5)
    recent.add(row(1, topic=topic, id="one") for topic in topics[FILTERS_FACTOR * 10 :])
    assert (len(recent), len(recent.newest([SIM], 99))) == (10 + FILTERS_FACTOR * 10, 10)
    assert len(recent._by_id[("sim", "one")]) <= FILTERS_FACTOR * 10


def test_alerts_without_stamps_take_room_too() -> None:
    held = StampCache(3 * ENTRY_BYTES)
    for number in range(10):
        held.add((SIM, 0, number), {})
    assert [held.get((SIM, 0, number)) for number in (6, 7)] == [None, {}]
