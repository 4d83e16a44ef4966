"""Questions to the directory: answered by SELECT alone, within limits."""

from collections.abc import Iterator
from typing import Any

import pytest

from nightwire.core.presence import entry
from nightwire.core.subscriptions import interest
from nightwire.directory import Answer, QueryError
from nightwire.directory.model import SiteRows, View


def put(rows: SiteRows, at: int, name: str, kind: str = "process", **more: Any) -> None:
    found = {"owner": "", "survey": "", "topic": "", "instance": "1", "interval": 2.0, "ended": False} | more
    rows.put_entry(entry(kind, name, **found) | {"endpoints": "{}"}, at)


@pytest.fixture
def view() -> Iterator[View]:
    view = View()
    rows = SiteRows(view, "local")
    with rows.batch():
        put(rows, 0 + 1, "dead")
        for second in range(2, 13, 2):
            put(rows, second * 1000, "alive")
            if second <= 6:
                put(rows, second * 1000, "o'late")
        put(rows, 12_000, "done", ended=True)
    yield view
    view.close()


def test_states_follow_from_silence(view: View) -> None:
    rows = view.query("SELECT name, state FROM processes ORDER BY name").rows
    assert rows == [("alive", "live"), ("dead", "gone"), ("done", "gone"), ("o'late", "late")]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM entries",
        "ATTACH 'other.db' AS other",
        "PRAGMA journal_mode",
        "CREATE TABLE mine (a)",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM entries",
        "SELECT zeroblob(1000000000)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT zeroblob(1000000) FROM n",
        "no sql",
        "SELECT * FROM nowhere",
        "SELECT '" + "x" * 70_000 + "'",
        "SELECT '\udcff'",
        "SELECT 1\0",
    ],
)
def test_what_does_not_just_read_is_refused(view: View, sql: str) -> None:
    with pytest.raises(QueryError):
        view.query(sql)
    assert view.query("SELECT count(*) FROM entries").rows == [(4,)]


def test_what_runs_for_ever_is_ended(view: View) -> None:
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with pytest.raises(QueryError, match="ran longer"):
        view.query(forever, timeout=0.1)


def test_a_join_of_a_million_rows_is_ended(view: View) -> None:
    million = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) "
        "SELECT count(*) FROM n a, n b WHERE a.i + b.i > 0"
    )
    with pytest.raises(QueryError, match="ran longer"):
        view.query(million, timeout=0.2)


def test_an_answer_has_a_limit_of_rows(view: View) -> None:
    with pytest.raises(QueryError, match="more than 3 rows"):
        view.query("SELECT * FROM entries", max_rows=3)


def test_answers_come_in_four_forms(view: View) -> None:
    answer = Answer(view.query("SELECT name, silence, NULL AS none FROM processes ORDER BY name"))
    assert answer.records()[0] == {"name": "alive", "silence": 0.0, "none": None}
    assert b'"o\'late"' in answer.json()
    assert answer.arrow().num_rows == 4
    assert b"o'late" in answer.votable()


def test_an_interest_is_gone_after_two_refreshes(view: View) -> None:
    rows = SiteRows(view, "far")
    with rows.batch():
        put(rows, 1000, "other")
        for at, name in ((1000, "dead"), (8000, "late"), (11_000, "alive")):
            found = interest("far", "ann", name, "alerts.sim", "flux > 1", instance="i", interval=5.0)
            rows.put_interest(found, at)
        put(rows, 15_000, "other")
    sql = "SELECT name, state, condition FROM subscriptions WHERE site = 'far' ORDER BY name"
    assert view.query(sql).rows == [
        ("alive", "live", "flux > 1"),
        ("dead", "gone", "flux > 1"),
        ("late", "late", "flux > 1"),
    ]
    assert rows.expired_interests(10) == [("ann", "dead")]
    with rows.batch():
        rows.delete_interest("ann", "dead")
    assert len(view.query(sql).rows) == 2
