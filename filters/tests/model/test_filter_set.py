"""The filter set, from the records of its topic."""

from typing import Any

from nightwire.filters.model.filter_set import FilterSet, dump, load


def record(version: int, live: bool = True, name: str = "f") -> dict[str, Any]:
    """Return a record of the topic `filters`."""
    return {
        "owner": "me", "name": name, "version": version, "live": live, "survey": "sim",
        "source": f"v{version}", "entry": "keep",
    }  # fmt: skip


def test_the_pointer_says_which_version_is_live() -> None:
    known = FilterSet()
    known.apply("me/f/1", record(1))
    assert known.live() == []
    known.apply("me/f", record(1))
    known.apply("me/f/2", record(2))
    assert [one.version for one in known.live()] == [1]
    known.apply("me/f", record(2))
    assert [one.source for one in known.live()] == ["v2"]
    assert (known.live_version("me", "f"), known.newest("me", "f")) == (2, 2)


def test_a_removed_filter_is_not_live_and_its_versions_are_not_given_again() -> None:
    known = FilterSet()
    for version in (1, 2):
        known.apply(f"me/f/{version}", record(version))
        known.apply("me/f", record(version))
    known.apply("me/f", {**record(2), "version": 0, "live": False})
    assert known.live() == []
    assert known.newest("me", "f") == 2
    known.apply("me/f", None)
    assert known.live_version("me", "f") == 0


def test_what_an_owner_can_go_back_to_is_needed() -> None:
    known = FilterSet()
    for version in range(1, 6):
        known.apply(f"me/f/{version}", record(version))
        known.apply(f"me/gone/{version}", record(version, name="gone"))
    known.apply("me/gone", {**record(5, name="gone"), "version": 0, "live": False})
    for live in (True, False):  # a disabled filter can be enabled
        known.apply("me/f", record(4, live=live))
        assert [one.version for one in known.needed()] == [3, 4, 5]
    known.apply("me/f", record(1))
    assert [one.version for one in known.needed()] == [1, 2, 3, 4, 5]


def test_filters_survive_the_disk() -> None:
    known = FilterSet()
    known.apply("me/f/1", record(1))
    known.apply("me/f", record(1))
    assert load(dump(known.live())) == known.live()
    assert known.names() == [("me", "f")]
