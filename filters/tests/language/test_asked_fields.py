"""The fields that a filter asks its alert for by constant names."""

import pytest

from nightwire.filters.language import NotCompilable, Program, asked_fields, compile_python, compile_sql

HELPED = """\
def faint(source, limit=3):
    return source["snr"] < limit

def keep(alert):
    source = alert["diaSource"]
    again = source
    return not faint(again) and any(p["psfFlux"] > 0 for p in alert.get("prvDiaSources", None) or [])
"""

LOOPED = """\
def keep(alert):
    for point in alert["prvDiaSources"][-3:]:
        if point["psfFlux"] > 0:
            return True
    return len(alert["prvDiaForcedSources"]) > 2 and alert["prvDiaSources"][0]["band"] == "g"
"""

REBOUND = """\
def keep(alert):
    part = alert["diaSource"]
    part = {"own": 1}
    return part["own"] and [alert["x"][name] for name in "ab"]
"""

TOLERANT = """\
def keep(alert):
    if "new" in alert["diaSource"]:
        return alert["diaSource"]["new"] > 1
    try:
        return alert["diaSource"]["newer"] > 1
    except KeyError:
        return alert["diaSource"]["old"] > 1
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (HELPED, {"diaSource": 5, "diaSource.snr": 2, "prvDiaSources": 7, "prvDiaSources.psfFlux": 7}),
        (
            LOOPED,
            {
                "prvDiaSources": 2,
                "prvDiaSources.psfFlux": 3,
                "prvDiaForcedSources": 5,
                "prvDiaSources.band": 5,
            },
        ),
        (REBOUND, {"diaSource": 2, "x": 4}),
        (TOLERANT, {"diaSource.old": 7}),
    ],
    ids=["helpers and aliases", "lists of points", "a name bound anew", "names that may be absent"],
)
def test_constant_names_are_found(source: str, expected: dict[str, int]) -> None:
    assert asked_fields(source, ["keep"]).fields.items() >= expected.items()
    assert asked_fields(source, ["keep"], compiled(source)).fields.keys() == expected.keys()


def compiled(source: str) -> Program | None:
    try:
        return compile_python(source)
    except NotCompilable:
        return None


def test_attributes_of_the_alert_are_found_and_those_of_its_values_are_not() -> None:
    source = "def keep(alert):\n    return alert.magnitud < 20 and alert['name'].startswith('Z')\n"
    assert asked_fields(source, ["keep"]).attributes == {"magnitud": 2}


def test_an_sql_condition_asks_for_what_its_program_reads() -> None:
    program = compile_sql("WHERE magnitude < 20\nAND magnitud < 20 AND diaObject.x IS NULL", "sim")
    assert asked_fields("", [], program).fields == {"diaSource.magnitud": 2, "diaObject.x": 2}
