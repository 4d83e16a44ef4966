"""Matches with catalogues: the same over columns, alert by alert, and in SQL."""

import re
from pathlib import Path
from typing import Any

import pytest

from filters.tests.helpers.matched import alerts, compiled, stocked
from nightwire.core.catalogues import CatalogueStore
from nightwire.filters.language import FilterError, compile_filter, evaluate
from nightwire.filters.model.text_facts import load_facts
from nightwire.filters.reading.matches import as_asked, with_matches
from nightwire.schemas import AlertTable, survey

BODIES = {
    'return alert.match("gaia", 2) is not None': [True, True, False, False],
    'return alert.match("gaia", 2) is None': [False, False, True, True],
    'return True if alert.match("gaia", 2) else False': [True, True, False, False],
    'return not alert.match("gaia", 2)': [False, False, True, True],
    'm = alert.match("gaia", 2)\n    return m is not None and m["g"] < 20': [True, False, False, False],
    'm = alert.match("gaia", 2)\n    return m and m["count"] == 2': [True, False, False, False],
    'return alert.match("gaia", 2)': [None, None, False, False],
    'm = alert.match("gaia", 0.1)\n    return (m or {}).get("count") == 1': [True, True, False, False],
    'm = alert.match("gaia", 2)\n    if not m:\n        return False\n    return m["name"] == "w"': [
        *(False, True, False, False)
    ],
    'return alert.match(CATALOGUE, RADIUS)["separation"] < 1': [True, True, "TypeError", "TypeError"],
    'return alert.match("me/targets", 5)["label"] == "mine"': ["TypeError", "TypeError", True, "TypeError"],
    'return alert.in_moc("area")': [True, False, False, False],
    'return not alert.in_moc("area") and alert.match("gaia", 2) is None': [False, False, True, True],
}
HEAD = 'RADIUS = 2.5\nCATALOGUE = "gaia"\n\n\ndef keep(alert):\n    '


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CatalogueStore:
    return stocked(tmp_path_factory.mktemp("store"))


def by_rows(source: str, batch: Any) -> list[Any]:
    """Return what Python says of each alert: a truth value, or the type of its error."""
    function, table = compile_filter(source, "keep"), AlertTable(batch, survey("sim"))
    found: list[Any] = []
    for row in range(len(table)):
        try:
            found.append(bool(function(table.view(row))))
        except Exception as error:  # noqa: BLE001 - whatever it is
            found.append(type(error).__name__)
    return found


@pytest.mark.parametrize("body", BODIES)
def test_columns_say_what_python_says(body: str, store: CatalogueStore) -> None:
    source = HEAD + body
    found = compiled(source, store)
    assert found.program is not None, found.remarks
    batch = with_matches(alerts(), found.program.names, "sim", store)
    verdicts = evaluate(found.program, AlertTable(batch, survey("sim")))
    faults = {row: text.partition(":")[0] for row, text in verdicts.faults.items()}
    unsure = set(verdicts.needs_python.tolist())
    over_columns = [
        None if row in unsure else faults.get(row, bool(verdicts.passed[row])) for row in range(len(alerts()))
    ]
    whole = with_matches(alerts(), load_facts(found.facts).matches, "sim", store)
    by_row = by_rows(source, as_asked(whole, load_facts(found.facts).matches))
    assert over_columns == BODIES[body]
    assert [one for one in over_columns if one is not None] == [
        one for one, known in zip(by_row, over_columns, strict=True) if known is not None
    ]


CONDITIONS = {
    "MATCH('gaia', 2) IS NOT NULL": [1, 2],
    "MATCH('gaia', 2) < 0.1": [1, 2],
    "match('gaia', 2, 'g') < 19": [1],
    "MATCH('gaia', 2, 'count') = 2": [1],
    "MATCH('gaia', 2, 'name') LIKE 'W%'": [2],
    "MATCH('gaia', 2) IS NULL AND MATCH('me/targets', 2.5) IS NULL": [4],
    "IN_MOC('area')": [1],
    "NOT IN_MOC('area')": [2, 3, 4],
    "CASE WHEN IN_MOC('area') THEN MATCH('gaia', 2, 'g') > 20 ELSE TRUE END": [2, 3, 4],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_sql_asks_for_columns(condition: str, store: CatalogueStore) -> None:
    found = compiled(condition, store, "sql")
    assert found.program is not None
    batch = with_matches(alerts(), found.program.names, "sim", store)
    verdicts = evaluate(found.program, AlertTable(batch, survey("sim")))
    assert [row + 1 for row in verdicts.passed.nonzero()[0]] == CONDITIONS[condition]
    assert verdicts.faults == {}


REFUSED = {
    "MATCH('gaja', 2) > 1": r"no catalogue gaja; did you mean gaia\?",
    "MATCH('gaia', 2, 'nam') = 'x'": r"gaia has no column nam; did you mean name\?",
    "MATCH('area', 2) > 1": r"area is a map of the sky: alert.in_moc\('area'\)",
    "IN_MOC('gaia')": "gaia is no map of the sky",
    "MATCH('bob/stars', 2) > 1": "bob/stars is a catalogue of bob; me may ask for shared ones",
    "MATCH('gaia', 0) > 1": "a radius lies between 0.001 and 3,600 arcsec, not 0",
    "MATCH('gaia', 9999) > 1": "a radius lies between",
    "MATCH(band, 2) > 1": r"MATCH takes constants: MATCH\('gaia', 2\)",
    "IN_MOC(band)": "IN_MOC takes the name of a map",
    "MATCH('a/b/x', 2) > 1": "a/b/x is a catalogue of a/b",
    "MATCH('../x', 2) > 1": "no catalogue or map is called '../x'",
    "MATCH('gaia:5', 2) > 1": "no catalogue or map is called 'gaia:5'",
    "MATCH('gaia#0', 2) > 1": "no catalogue or map is called 'gaia#0'",
    "MATCH('gaia.g', 2) > 1": "no catalogue or map is called 'gaia.g'",
    "IN_MOC('gaia:9999999')": "no catalogue or map is called 'gaia:9999999'",
}


@pytest.mark.parametrize("condition", REFUSED)
def test_what_is_not_there_is_refused(condition: str, store: CatalogueStore) -> None:
    with pytest.raises(FilterError, match=REFUSED[condition]):
        compiled(condition, store, "sql")


def test_what_would_take_too_long_is_refused(store: CatalogueStore, monkeypatch: pytest.MonkeyPatch) -> None:
    many = " OR ".join(f"MATCH('gaia', {radius}) > 1" for radius in range(1, 22))
    with pytest.raises(FilterError, match="it asks for 21 matches, limit is 20"):
        compiled(many, store, "sql")
    monkeypatch.setattr("nightwire.filters.admission.catalogue_names.MOST_NEAR", 1e-6)
    with pytest.raises(
        FilterError, match="within 3600 arcsec of a position lie 0 objects of gaia in the mean"
    ):
        compiled("MATCH('gaia', 3600) > 1", store, "sql")
    assert compiled("MATCH('gaia', 2) > 1", store, "sql").program


def test_python_is_refused_with_its_line(store: CatalogueStore) -> None:
    body = (
        'm = alert.match("gaia", 2)\n    try:\n        return m["nam"]\n    except TypeError:\n        pass'
    )
    with pytest.raises(FilterError, match=r"line \d+: catalogue gaia has no column nam; did you mean name"):
        compiled(HEAD + body, store)


@pytest.mark.parametrize("call", ["match({!r}, 2)", "in_moc({!r})"])
@pytest.mark.parametrize("name", ["gaia:5", "gaia:", "gaia#0", "gaia?", "gaia.g", "@gaia"])
def test_no_name_is_taken_for_another(call: str, name: str, store: CatalogueStore) -> None:
    """In Python such a filter is code, and each alert a fault that says so."""
    source = HEAD + f"return bool(alert.{call.format(name)})"
    found = compiled(source, store)
    assert found.program is None
    assert load_facts(found.facts).matches == ()
    with pytest.raises(ValueError, match=f"no catalogue or map is called {re.escape(repr(name))}"):
        compile_filter(source, "keep")(AlertTable(alerts(), survey("sim")).view(0))


@pytest.mark.parametrize("radius", [0, 0.0005, -1, 3601])
def test_code_that_asks_for_no_radius_compiles_not(radius: float, store: CatalogueStore) -> None:
    body = (
        f'try:\n        return alert.match("gaia", {radius!r})["g"] > 1\n    except TypeError:\n        pass'
    )
    assert load_facts(compiled(HEAD + body, store).facts).matches == ()


def test_a_filter_names_the_versions_that_it_was_accepted_with(tmp_path: Path) -> None:
    store = stocked(tmp_path)
    source = HEAD + 'return alert.match("gaia", 2) is not None'
    before = compiled(source, store)
    (tmp_path / "new.csv").write_text("ra,dec\n50,0\n")
    store.add("gaia", tmp_path / "new.csv", replace=True)
    after = compiled(source, store)
    passing = []
    for one in (before, after):
        assert one.program is not None
        both = with_matches(alerts(), [*before.fields, *after.fields], "sim", store)
        passing.append(evaluate(one.program, AlertTable(both, survey("sim"))).passed.tolist())
    assert passing == [[True, True, False, False], [False, False, True, False]]


def test_conditions_that_stopped_an_alert_are_told(store: CatalogueStore) -> None:
    """The programs that find them name the same versions."""
    facts = load_facts(compiled("snr > 5 AND MATCH('gaia', 2) IS NULL", store, "sql").facts)
    assert facts.probe is not None
    asked = [name for program in facts.probe.programs for name in program.names if name.startswith("@")]
    assert asked == [f"{facts.matches[0]}.separation"]
    assert "#" in facts.matches[0]
