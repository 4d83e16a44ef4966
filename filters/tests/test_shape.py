"""What transforms make of alerts: what they drop, mean and declare; what does not fit."""

from typing import Any

import pytest

from nightwire.filters._lite import lite
from nightwire.filters._outlet import Mould
from nightwire.filters._shape import Added, Shape, declared, mean, misfit, parsed, shape_from
from nightwire.filters.language import FilterError
from nightwire.schemas import Codec, derived_schema, kept_fields, sim_alert_schema, survey, surveys, wire

ADDS = (
    Added("score", "float"), Added("label", "str"), Added("points", "int"), Added("sure", "bool"),
    Added("curve", "list[float]"),
)  # fmt: skip


def test_what_is_added_is_read_from_the_source_and_never_run() -> None:
    source = 'ADDS = {"score": float, "label": (str, "What it is."), "curve": list[float]}\ndef f(a): ...\n'
    assert declared(source) == (
        Added("score", "float"),
        Added("label", "str", "What it is."),
        Added("curve", "list[float]"),
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def transform(a): return {}", "declares what it adds, as ADDS = {"),
        ("ADDS = make()", "declares what it adds"),
        ('ADDS = {"score": complex}', "score is declared as complex; types are float, int"),
        ('ADDS = {"my score": float}', "is no name of a field"),
        ("ADDS = {**other}", "is no name of a field"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(source: str, said: str) -> None:
    with pytest.raises(FilterError, match=said.replace("{", r"\{").replace("(", r"\(")):
        declared(source)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"score": 0.5, "label": "SN", "points": 3, "sure": True, "curve": [1.0, 2]}, None),
        ({"score": float("nan"), "curve": []}, None),
        ({"score": 1, "label": None}, None),
        ({}, None),
        ({"points": 1.0}, "transform gave float 1.0 for points, declared as int"),
        ({"points": True}, "transform gave bool True for points, declared as int"),
        ({"points": 1 << 63}, "for points, declared as int"),
        ({"sure": 1}, "transform gave int 1 for sure, declared as bool"),
        ({"label": 5}, "for label, declared as str"),
        ({"label": "\ud800"}, "for label, declared as str"),
        ({"curve": [1.0, None]}, "transform gave a list of float 1.0 for curve"),
        ({"grade": 1}, "transform gave 'grade', which ADDS does not declare"),
        ([1], "transform gave a list of int 1, not a dictionary"),
    ],
)
def test_values_are_as_declared_or_say_which_is_not(values: Any, wrong: str | None) -> None:
    found = misfit(ADDS, values)
    assert found == wrong if wrong is None else wrong in str(found)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"score": 1', "\x00"])
def test_what_is_no_json_is_wrong(text: str) -> None:
    assert parsed(ADDS, text) == "transform gave what is no JSON"


def test_a_mean_leaves_out_what_is_no_number() -> None:
    assert mean([1.0, None, 3, float("nan"), float("inf"), -99999.0], [-99999.0]) == 2.0
    assert mean([]) is None


def test_a_shape_survives_the_disk() -> None:
    shape = Shape(("cutoutScience",), ("prvDiaSources.psfFlux",), ADDS)
    assert shape_from(shape.as_json()) == shape
    assert shape
    assert not Shape()


def test_means_and_what_is_computed_are_described_in_the_schema() -> None:
    shape = Shape(
        means=("prvDiaSources.psfFlux", "prvDiaSources.snr"), adds=(Added("label", "str", "What it is."),)
    )
    count, flux, snr, label = shape.fields()
    assert [one["name"] for one in (count, flux, snr)] == [
        "prvDiaSourcesCount", "prvDiaSourcesMeanPsfFlux", "prvDiaSourcesMeanSnr",
    ]  # fmt: skip
    assert label == {"name": "label", "type": ["null", "string"], "default": None, "doc": "What it is."}
    assert flux["type"] == ["null", "double"]
    assert "prvDiaSources" in flux["doc"]


@pytest.mark.parametrize("name", surveys())
def test_a_light_alert_has_no_stamps_and_no_histories(name: str) -> None:
    light, about = lite(name), survey(name).description
    assert {one.path for one in about.history} <= set(light["drop"])
    assert all(path.partition(".")[0] in light["drop"] for path in about.stamps.values())
    assert len(light["means"]) == len(about.history)


def test_an_alert_is_made_over(make_alert: Any) -> None:
    """Dropped fields are gone, the means are there, what is left is as it was, and a view of it works."""
    schema, shape = sim_alert_schema(), Shape(**{key: tuple(value) for key, value in lite("sim").items()})
    made = derived_schema(schema, shape.drop, shape.fields())
    past = {**make_alert(1)["diaSource"], "psfFlux": 10.0}
    alert = {
        **make_alert(5, 400.0),
        "prvDiaSources": [past, {**past, "psfFlux": 20.0}],
        "cutoutScience": b"fits",
    }
    mould = Mould(
        Codec(schema), kept_fields(schema, shape.drop), dict.fromkeys(shape.means, ()), Codec(made), 101_000
    )
    number, body = wire.unframe(mould.value(Codec(schema).encode(alert), {}))
    found = Codec(made).decode(body)
    assert number == 101_000
    assert (found["prvDiaSourcesCount"], found["prvDiaSourcesMeanPsfFlux"]) == (2, 15.0)
    assert found["diaSource"] == Codec(schema).decode(Codec(schema).encode(alert))["diaSource"]
    assert found.keys().isdisjoint(shape.drop)
    view = survey("sim").view(found)
    assert (view.id, view.flux, list(view.history), view.stamps) == (5, 400.0, [], {})
