"""Many sites in one view: each says how old its rows are, none takes room from others."""

from collections.abc import Iterator
from typing import Any

import pytest

from nightwire.core.presence import entry
from nightwire.directory.model import SiteRows, View

SAID = {"owner": "", "survey": "", "topic": "", "instance": "1", "interval": 0.0, "ended": False}


@pytest.fixture
def view() -> Iterator[View]:
    one = View()
    yield one
    one.close()


def put(rows: SiteRows, name: str, at: int = 1_000, **more: Any) -> None:
    with rows.batch():
        rows.put_entry(entry("broker", name, **SAID | more) | {"endpoints": "{}"}, at)


def test_rows_age_by_site_while_nothing_is_heard_of_it(view: View) -> None:
    near, far = SiteRows(view, "near"), SiteRows(view, "far")
    put(near, "a")
    put(far, "b")
    view.db.execute("UPDATE site_logs SET reached = reached - 1 WHERE site = 'far'")
    with near.batch():
        pass
    ages = dict(view.query("SELECT site, age FROM peers").rows)
    assert ages["near"] < 10 < 86_399 < ages["far"] < 86_500
    put(far, "c")
    assert view.query("SELECT max(age) < 10 FROM peers").rows == [(1,)]


def test_a_site_has_no_more_room_than_it_is_given_and_others_keep_theirs(view: View) -> None:
    near, far = SiteRows(view, "near"), SiteRows(view, "far", max_bytes=1_000)
    for name in ("a", "b", "c", "d"):
        put(far, name)
    for _again in range(3):
        put(far, "a")
    with pytest.raises(ValueError, match="1000 bytes"):
        put(far, "e")
    with pytest.raises(ValueError, match="1000 bytes"), far.batch():
        far.put_filter("ann", "f", {"version": 1, "survey": "", "cap": 1, "live": True}, "filter.ann.f")
    put(near, "e")
    with far.batch():
        far.delete_entry("broker", "a")
    put(far, "e")
    sql = "SELECT site, group_concat(name) FROM (SELECT site, name FROM peers ORDER BY name) GROUP BY site"
    assert view.query(sql).rows == [("far", "b,c,d,e"), ("near", "e")]


def test_topics_and_groups_are_those_seen_last(view: View) -> None:
    rows = SiteRows(view, "far")
    for topics, members in (
        (
            [("alerts.lsst", 3, None, 1, None), ("returns.antares", 1, None, None, None)],
            [("g", "alerts.lsst", 2, 7)],
        ),
        (
            [("alerts.lsst", 3, 0.5, 2, None), ("requests.ann", 1, None, None, None)],
            [("g", "alerts.lsst", 1, None)],
        ),
    ):
        with rows.batch():
            rows.set_topics(topics)
            rows.set_members(members)
    sql = "SELECT topic, kind, survey, rate, newest, members FROM streams ORDER BY topic"
    assert view.query(sql).rows == [
        ("alerts.lsst", "alerts", "lsst", 0.5, 2, 1),
        ("requests.ann", "requests", "", None, None, 0),
    ]
    assert view.query("SELECT site, name FROM owners").rows == [("far", "ann")]
    assert view.query("SELECT * FROM brokers").rows == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM peers WHERE name = 'x'",
        "SELECT * FROM peers WHERE name = 'x' AND site = 'far'",
        "SELECT * FROM peers WHERE kind = 'broker' AND name = 'x'",
        "SELECT * FROM peers WHERE kind = 'broker' AND owner = 'x'",
        "SELECT * FROM processes WHERE name = 'x'",
        "SELECT * FROM processes WHERE site = 'far'",
        "SELECT * FROM streams WHERE topic = 'x'",
        "SELECT * FROM streams WHERE survey = 'x'",
        "SELECT * FROM streams WHERE kind = 'x'",
        "SELECT * FROM filters WHERE name = 'x'",
        "SELECT * FROM filters WHERE owner = 'x'",
        "SELECT * FROM filters WHERE survey = 'x' AND alive",
        "SELECT * FROM consumers WHERE name = 'x'",
        "SELECT * FROM consumers WHERE topic = 'x'",
        "SELECT * FROM brokers WHERE name = 'x'",
        "SELECT * FROM owners WHERE name = 'x'",
        "SELECT * FROM sites WHERE site = 'x'",
    ],
)
def test_questions_for_a_few_rows_look_at_a_few_rows_however_many_sites_there_are(
    view: View, sql: str
) -> None:
    """By a name, never all of a table; of a name within a kind, never all of that kind."""
    view._connections.db.set_authorizer(None)
    plan = [step for *_, step in view._connections.db.execute(f"EXPLAIN QUERY PLAN {sql}")]
    tables = ("SCAN e", "SCAN t", "SCAN m", "SCAN f", "SCAN site_logs")
    assert [step for step in plan if step.startswith(tables)] == []
    if "name = 'x'" in sql:
        assert [step for step in plan if step.endswith("entries_by_kind (kind=?)")] == []
