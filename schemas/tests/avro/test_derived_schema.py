"""Schemas made of others: fields dropped, fields added."""

from typing import Any

import pytest

from nightwire.schemas import Codec, derived_schema, kept_fields, sim_alert_schema

POINT = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "x", "type": "float"}, {"name": "y", "type": "float"}],
}
SCHEMA: dict[str, Any] = {
    "type": "record", "name": "alert", "namespace": "a.b", "doc": "An alert.",
    "fields": [
        {"name": "id", "type": "long", "doc": "Its id.", "unit": "none"},
        {"name": "now", "type": POINT},
        {"name": "past", "type": ["null", {"type": "array", "items": "point"}], "default": None},
        {"name": "stamp", "type": ["null", "bytes"], "default": None},
    ],
}  # fmt: skip
SCORE = {"name": "score", "type": ["null", "double"], "default": None, "doc": "How sure."}
ALERT = {"id": 5, "now": {"x": 1.0, "y": 2.0}, "past": [{"x": 3.0, "y": 4.0}], "stamp": b"fits"}


def names(schema: dict[str, Any]) -> list[str]:
    """Return the names of a schema's fields."""
    return [one["name"] for one in schema["fields"]]


def test_nothing_dropped_and_nothing_added_is_the_same() -> None:
    same = derived_schema(SCHEMA, [])
    assert Codec(same).encode(ALERT) == Codec(SCHEMA).encode(ALERT)
    assert same["doc"] == "An alert."
    assert same["fields"][0]["unit"] == "none"


def test_fields_go_and_come() -> None:
    made = derived_schema(SCHEMA, ["stamp", "past", "nowhere.at.all"], [SCORE])
    assert names(made) == ["id", "now", "score"]
    assert made["fields"][-1] == SCORE
    assert derived_schema(SCHEMA, [], [{"name": "now", "type": "int"}])["fields"][-1] == {
        "name": "now",
        "type": "int",
    }


@pytest.mark.parametrize(
    ("drop", "left"),
    [
        (["now.y"], {"now": {"x": 1.0}, "past": [{"x": 3.0, "y": 4.0}]}),
        (["past.x"], {"now": {"x": 1.0, "y": 2.0}, "past": [{"y": 4.0}]}),
        (["past.x", "now.x"], {"now": {"y": 2.0}, "past": [{"y": 4.0}]}),
    ],
    ids=["here", "in the array", "in both"],
)
def test_a_type_that_stands_in_two_places_loses_fields_in_one(drop: list[str], left: dict[str, Any]) -> None:
    made, kept = derived_schema(SCHEMA, drop), kept_fields(SCHEMA, drop)
    alert = Codec(SCHEMA).decode(Codec(SCHEMA).encode(ALERT), kept)
    assert alert == {"id": 5, "stamp": b"fits", **left}
    assert Codec(made).decode(Codec(made).encode(alert)) == alert


def test_what_is_left_of_a_real_schema_reads_what_is_left_of_its_alerts() -> None:
    schema = sim_alert_schema()
    drop = [name for name in names(schema) if name.startswith("cutout")] + ["diaSource.ra"]
    made = derived_schema(schema, drop, [SCORE])
    assert drop
    kept = kept_fields(schema, drop)
    assert not {path for path in kept if path.startswith("cutout")}
    assert "diaSource.dec" in kept
    assert "diaSource.ra" not in kept
    assert Codec(made).schema["fields"][-1]["name"] == "score"
