"""Names that no schema has are refused; those that only some have are told of."""

from typing import Any

import pytest

from nightwire.filters.language import (
    AskedFields,
    SurveySchemas,
    asked_fields,
    missing_names,
    partial_names,
    schema_names,
    unknown_names,
)


def schema(**sources: str) -> dict[str, Any]:
    """Return an alert's schema whose record diaSource has fields of these types."""
    fields = [{"name": name, "type": kind} for name, kind in sources.items()]
    record = {"type": "record", "name": "s", "fields": fields}
    tags = {"type": "map", "values": "string"}
    return {
        "type": "record",
        "name": "alert",
        "fields": [{"name": "diaSource", "type": ["null", record]}, {"name": "tags", "type": tags}],
    }


OLD, NEW = schema_names(schema(psfFlux="float")), schema_names(schema(psfFlux="float", trail="float"))
LSST, ZTF, SIM = SurveySchemas("lsst", [OLD, NEW]), SurveySchemas("ztf"), SurveySchemas("sim", [OLD])


@pytest.mark.parametrize(
    ("path", "known", "said"),
    [
        ("diaSource.psfFlux", [LSST], ""),
        ("diaSource.trail", [LSST], ""),
        ("diaSource", [LSST], ""),
        ("tags.anything", [LSST], ""),
        ("diaSource.psfFluxx", [LSST], "alerts of lsst have no field diaSource.psfFluxx; did you mean "
         "diaSource.psfFlux?"),
        ("diaSource.magnitud", [LSST], "did you mean magnitude, which all surveys have?"),
        ("diaSourc.psfFlux", [LSST], "did you mean diaSource.psfFlux?"),
        ("qqqqqq", [LSST, SIM], "alerts of lsst or sim have no field qqqqqq"),
        ("diaSource.psfFluxx", [ZTF], ""),
        ("candidate.magpsf", [LSST, ZTF], ""),
        ("diaSource.nope", [LSST, ZTF], "alerts of lsst have no field diaSource.nope"),
        ("anything", [], ""),
    ],
)  # fmt: skip
def test_a_name_that_no_schema_has_is_refused(path: str, known: list[SurveySchemas], said: str) -> None:
    found = [*unknown_names(AskedFields({path: 3}), known)]
    assert found == [] if not said else said in found[0]
    assert all(text.startswith("line 3: ") for text in found)


def test_an_attribute_that_no_alert_has_is_refused() -> None:
    asked = AskedFields(attributes={"magnitud": 2, "flux": 1, "light_curve": 1, "items": 1})
    assert [*unknown_names(asked, [])] == [
        "line 2: an alert has no attribute magnitud; did you mean magnitude?"
    ]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("any(point.fluxx > 1 for point in alert.history)", "no attribute fluxx; did you mean flux?"),
        ("alert.history[-1].bandd == 'g'", "no attribute bandd; did you mean band?"),
        ("alert.history and alert.history[0].flux > alert.history[0]['anything']", ""),
        ("len([point for point in alert.history[:3] if point.get('x')]) + alert.history.count(1)", ""),
        ("[point.nope for point in other]", ""),
    ],
)
def test_an_attribute_that_no_point_of_the_history_has_is_refused(code: str, said: str) -> None:
    asked = asked_fields(f"def keep(alert):\n    return {code}\n", ["keep"])
    found = [*unknown_names(asked, [LSST])]
    assert found == [] if not said else found[0].startswith("line 2: a point of the history has " + said)


def test_a_name_that_some_schemas_have_is_told_of() -> None:
    asked = AskedFields({"diaSource.trail": 1, "diaSource.psfFlux": 2})
    assert [*partial_names(asked, [LSST, SIM, ZTF])] == [
        "only 1 of 2 versions of lsst's schema have diaSource.trail",
        "alerts of sim have no diaSource.trail",
    ]
    (unchecked,) = partial_names(asked, [ZTF])
    assert unchecked.startswith("the names of its fields were not checked")


@pytest.mark.parametrize(
    ("text", "taken", "said"),
    [
        ("diaSource.psfFlux > 3", 1, ""),
        ("diaSource.trail > 3 AND magnitude < 19", 1, ""),
        ("diaSource.old > 3", 2, ""),
        ("magnitud < 19", 2, "line 1: alerts of lsst have no field diaSource.magnitud; did you mean "),
    ],
)
def test_older_schemas_are_asked_for_what_the_newest_does_not_have(text: str, taken: int, said: str) -> None:
    versions = iter([schema(psfFlux="float", trail="float"), schema(psfFlux="float", old="float")])
    found = missing_names(text, "lsst", versions)
    assert found == [] if not said else found[0].startswith(said)
    assert len([*versions]) == 2 - taken
