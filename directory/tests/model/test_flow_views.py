"""Who writes and who reads each topic."""

from directory.tests.sample import HOSTILE
from nightwire.core.presence import entry
from nightwire.directory.model import SiteRows, View


def test_entries_filters_and_names_of_topics_say_who_writes(sample_view: View) -> None:
    rows = sample_view.query("SELECT topic, kind, name, state FROM writers ORDER BY topic, kind, name").rows
    assert rows == [
        ("alerts.lsst", "process", "ingest-lsst", "late"),
        ("alerts.sim", "process", "stream", "live"),
        ("alerts.sim", "producer", HOSTILE, "live"),
        ("answers.ann", "process", "filters", "live"),
        ("filter.ann.snr", "filter", "ann/snr", "live"),
        ("filter.bob.nova", "filter", "bob/nova", "gone"),
        ("requests.ann", "owner", "ann", "listed"),
        ("returns.antares", "broker", "antares", "listed"),
        ("voevents", "process", "gateway", "live"),
    ]


def test_groups_filters_and_feeds_read(sample_view: View) -> None:
    rows = sample_view.query(
        "SELECT topic, kind, name, members, lag, state FROM readers ORDER BY topic, kind, name"
    ).rows
    assert rows == [
        ("alerts.sim", "consumer", "antares.all", 8, None, "live"),
        ("alerts.sim", "filter", "ann/snr", None, None, "live"),
        ("alerts.sim", "filter", "bob/nova", None, None, "gone"),
        ("filter.ann.snr", "consumer", "ann.reads", 2, 1234, "live"),
        ("filter.ann.snr", "feed", "gateway/bright", None, None, "live"),
        ("voevents", "feed", "gateway/main", None, None, "live"),
    ]


def test_capabilities_that_are_no_json_hurt_nobody_else(sample_view: View) -> None:
    rows = SiteRows(sample_view, "other")
    said = {"owner": "", "survey": "", "topic": "", "instance": "1", "interval": 2.0, "ended": False}
    with rows.batch():
        rows.put_entry({**entry("process", "broken", **said), "endpoints": "{}", "capabilities": "{["}, 1)
    assert len(sample_view.query("SELECT * FROM feeds").rows) == 2
    assert sample_view.query("SELECT state FROM processes WHERE name = 'broken'").rows == [("live",)]
