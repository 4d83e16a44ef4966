"""The view of what carries alerts: streams, filters, brokers' topics, feeds, what is listed."""

from collections.abc import Iterator
from typing import Any

import pytest

from nightwire.core.presence import entry
from nightwire.directory.model import SiteRows, View

FEEDS = {"feeds": [{"name": "sky", "topics": ["filter.ann.bright"], "endpoint": "127.0.0.1:8099"}]}
FILTER = {"version": 1, "survey": "lsst", "cap": 20, "live": True}


def put(rows: SiteRows, kind: str, name: str, **more: Any) -> None:
    found: dict[str, Any] = {
        "owner": "",
        "survey": "",
        "topic": "",
        "instance": "1",
        "interval": 0.0,
        "ended": False,
    } | more
    rows.put_entry(entry(kind, name, **found) | {"endpoints": "{}"}, 1000)


@pytest.fixture
def view() -> Iterator[View]:
    view = View()
    rows = SiteRows(view, "local", "here:9092", "http://here:8081")
    names = ("alerts.lsst", "filter.ann.bright", "filter.ann.gone", "broker.antares.all", "night", "filters")
    with rows.batch():
        rows.set_topics((name, 1, 2.0, 1000, 7) for name in (*names, "requests.ann", "returns.antares"))
        rows.put_filter("ann", "bright", FILTER, "filter.ann.bright")
        rows.put_filter("antares", "whole", FILTER, "broker.antares.all")
        rows.put_filter("bob", "new", FILTER, "filter.bob.new")
        put(rows, "process", "gateway", capabilities=FEEDS, interval=2.0)
        put(rows, "stream", "tonight", owner="ann", survey="lsst", topic="night")
        put(rows, "consumer", "reader", owner="ann", survey="lsst", topic="night")
        put(rows, "stream", "nothing", topic="nowhere")
    yield view
    view.close()


def test_each_topic_with_alerts_is_there_as_what_it_is(view: View) -> None:
    rows = view.query("SELECT kind, name, owner, survey, topic FROM channels ORDER BY kind, name").rows
    assert rows == [
        ("broker", "all", "antares", "lsst", "broker.antares.all"),
        ("feed", "sky", "", "lsst", "filter.ann.bright"),
        ("filter", "bright", "ann", "lsst", "filter.ann.bright"),
        ("filter", "gone", "ann", "", "filter.ann.gone"),
        ("stream", "lsst", "", "lsst", "alerts.lsst"),
        ("stream", "tonight", "ann", "lsst", "night"),
    ]


def test_a_survey_is_there_while_its_alerts_have_a_topic(view: View) -> None:
    sql = "SELECT name, topic, capabilities ->> '$.title' FROM peers WHERE kind = 'survey' ORDER BY name"
    assert view.query(sql).rows == [("lsst", "alerts.lsst", "Rubin Observatory LSST")]
    rows = SiteRows(view, "lund")
    with rows.batch():
        rows.set_topics([("alerts.sky", 1, None, None, None), ("alerts.ztf", 1, None, None, None)])
        put(rows, "survey", "ztf", owner="ann")
        rows.set_topics([])
    wanted = [("local", "lsst", ""), ("lund", "ztf", "ann")]
    sql = "SELECT site, name, owner FROM peers WHERE kind = 'survey' ORDER BY site"
    assert view.query(sql).rows == wanted, "what somebody has listed stays"


def test_a_row_carries_what_is_needed_to_use_it(view: View) -> None:
    sql = "SELECT * FROM channels WHERE survey='lsst' and kind='filter' and owner='ann'"
    found = view.query(sql)
    (row,) = [dict(zip(found.columns, values, strict=True)) for values in found.rows]
    assert (row["bootstrap"], row["registry"], row["topic"], row["schema_id"]) == (
        "here:9092",
        "http://here:8081",
        "filter.ann.bright",
        7,
    )
    assert (row["site"], row["rate"]) == ("local", 2.0)
