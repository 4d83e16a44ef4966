"""Conditions in SQL, for people who come from Lasair."""

import sqlite3

import pytest

from filters.tests.helpers.random_alerts import alerts, database, table
from nightwire.filters.language import FilterError, Program, compile_sql, evaluate
from nightwire.filters.language.vector.logic import matcher
from nightwire.schemas import AlertTable

ALERTS = alerts(11, 300)


@pytest.fixture(scope="module")
def columns() -> AlertTable:
    """Return the alerts as columns."""
    return table(ALERTS)


@pytest.fixture(scope="module")
def rows() -> sqlite3.Connection:
    """Return the alerts in SQLite."""
    return database(ALERTS)


SAME_AS_SQLITE = [
    "magnitude < 19 AND ABS(galactic_latitude) > 10",
    "WHERE snr > 10 OR magnitude IS NULL;",
    "NOT (flux > 0)",
    "NOT (flux > 0 OR magnitude < 20)",
    "NOT (flux > 0 AND solar_system_id > 5)",
    "(flux > 0 OR band = 'r') IS NULL OR (flux > 0 AND band = 'r') IS NULL",
    "NOT (flux > 0) OR NOT flux <= 0",
    "flux BETWEEN -100 AND 3000 AND dec NOT BETWEEN -10 AND 10",
    "band IN ('g', 'r') AND snr > 5",
    "band NOT IN ('g', 'r', NULL)",
    "band IN ('g', NULL)",
    "\"diaSource.reason\" LIKE 'm%' OR \"diaSource.reason\" LIKE '_P'",
    "\"diaSource.reason\" NOT LIKE '%a_b%'",
    "\"diaSource.reason\" LIKE '%A%I%' OR band LIKE '_'",
    "\"diaSource.reason\" LIKE 'm%n' OR \"diaSource.reason\" LIKE '%' AND band NOT LIKE '%%'",
    "flux * 2 + 1 > 10 AND -flux < 3 - 4",
    "SQRT(flux) > 10 OR LOG10(flux) < 1",
    "LN(flux) > 2 AND EXP(flux / 1e4) < 2",
    "POWER(snr, 2.0) > 1e3 OR POWER(flux, 0.5) > 30",
    "flux / 0.0 > 1 OR flux / snr > 20",
    "COALESCE(flux, snr, 0) > 10 AND IFNULL(magnitude, 99) > 18",
    "NULLIF(visit, 5) > 100",
    "CASE WHEN flux > 0 THEN snr WHEN flux < 0 THEN magnitude END > 19",
    "(flux > 0) = (dec > 0)",
    "flux > snr AND ROUND(snr) >= 5 AND FLOOR(ra) <> 7 AND CEIL(dec) < 40",
    "id = 9007199254740993 OR object_id > 9007199254740992.0",
    "LENGTH(band) = 1 AND LOWER(band) = UPPER(band) OR band >= 'r'",
    "SIN(RADIANS(dec)) > 0.5 AND DEGREES(ATAN2(flux, snr)) < 80",
    "TRUE AND flux IS NOT NULL",
    "healpix % 3 = 1",
    "(visit + 2026112204490000125) % 20 = 5 OR (visit - 2026112204490000125) % 20 < -17",
    "flux\n> 3",
]


@pytest.mark.parametrize("condition", SAME_AS_SQLITE)
def test_conditions_choose_what_sqlite_chooses(
    condition: str, columns: AlertTable, rows: sqlite3.Connection
) -> None:
    said = evaluate(Program.loads(compile_sql(condition).dumps()), columns)
    where = condition.removeprefix("WHERE ").removesuffix(";")
    chosen = {at for (at,) in rows.execute(f"SELECT at FROM alerts WHERE {where}")}  # noqa: S608
    assert set(said.passed.nonzero()[0].tolist()) == chosen
    assert not said.faults
    assert len(said.needs_python) == 0


def test_an_id_is_rounded_to_itself(columns: AlertTable) -> None:
    large = evaluate(compile_sql("ROUND(9007199254740993 + visit) = 9007199254740993 + visit"), columns)
    assert set(large.passed.nonzero()[0]) == set(
        evaluate(compile_sql("visit IS NOT NULL"), columns).passed.nonzero()[0]
    )


def test_least_and_greatest_are_sqlites_min_and_max(rows: sqlite3.Connection) -> None:
    said = evaluate(compile_sql("LEAST(flux, snr, 20) > 3 AND GREATEST(flux, 9) < 300"), table(ALERTS))
    where = "min(flux, snr, 20) > 3 AND max(flux, 9) < 300"
    chosen = {at for (at,) in rows.execute(f"SELECT at FROM alerts WHERE {where}")}  # noqa: S608
    assert set(said.passed.nonzero()[0].tolist()) == chosen
    assert chosen


def test_bare_names_are_fields_of_the_surveys_source() -> None:
    assert compile_sql("reliability > 0.5", "sim").nodes == compile_sql("diaSource.reliability > 0.5").nodes
    assert compile_sql("rb > 0.5", "ztf").names == ("candidate.rb",)


def test_a_pattern_cannot_take_for_ever() -> None:
    """A regular expression for it would try more ways than there are atoms."""
    assert not matcher("%a" * 200 + "%b")("a" * 2_000)
    assert matcher("%a" * 200 + "%b")("a" * 2_000 + "B")
    assert not matcher("ab%ba")("aba")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("flux <", "line 1, column 7: a value is expected, not 'the end'"),
        ("flux > 3 AND", "column 13: a value is expected"),
        ("flux ~ 3", "column 6: '~ 3' is not understood"),
        ("flux > 1\n  AND foo(3)", "line 2, column 7: there is no function FOO of 1 arguments"),
        ("flux > 1 magnitude", "column 10: 'magnitude' does not belong here"),
        ("(flux > 1", ") is expected"),
        ("flux BETWEEN 1", "AND is expected"),
        ("band LIKE flux", "LIKE takes a pattern in quotes"),
        ("flux > 99999999999999999999", "64 bits at most"),
        ("reliability > 1", "there is no reliability; there are band, "),
        ("flux IS 3", "NULL is expected"),
        ("(" * 70 + "flux" + ")" * 70, "nested deeper than 60"),
        ("", "a value is expected"),
        ("'" + "x" * 2_500_000 + "'", "limit is 2,500,000"),
    ],
)
def test_what_is_no_condition_says_where_and_why(condition: str, said: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_sql(condition)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("diaSource.nothing > 3", "KeyError: the alerts have no such field: diaSource.nothing"),
        ("prvDiaSources.psfFlux > 3", "TypeError: a list of values is no value: prvDiaSources.psfFlux"),
        (
            "band > 3 AND band IS NOT NULL",
            "TypeError: '>' not supported between instances of 'str' and 'int'",
        ),
        ("band || 'x' = 'rx'", None),
        ("band + 'x' = 'rx'", "TypeError: texts cannot be computed with"),
        ("flux LIKE 'x'", "TypeError: LIKE compares texts, not numbers"),
    ],
)
def test_what_no_alert_can_answer_is_a_fault_not_a_silent_no(condition: str, said: str | None) -> None:
    if said is None:
        with pytest.raises(FilterError, match="does not belong here"):
            compile_sql(condition)
        return
    found = evaluate(compile_sql(condition), table(ALERTS))
    assert f"{said} (line 1: {condition})" in found.faults.values()
    assert len(found.needs_python) == 0
