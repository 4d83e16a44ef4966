"""A site with streams, a gateway, filters and readers, and names that mean harm; for tests."""

import json
from typing import Any

from nightwire.core.presence import entry
from nightwire.directory.model import SiteRows, View

NOW = 1_700_000_000_000
"""The log's present. [ms since 1970, UTC]"""
HOSTILE = "<img src=x onerror=alert(1)>"
TOPICS = [
    ("alerts.sim", 8, 256.4, NOW, 100_100),
    ("alerts.lsst", 8, 0.0, NOW - 3_600_000, 703),
    ("voevents", 4, 0.2, NOW, 100_003),
    ("filter.ann.snr", 1, 12.5, NOW, None),
    ("filter.bob.nova", 1, None, None, None),
    ("returns.antares", 1, 1.0, NOW, None),
    ("requests.ann", 1, 0.0, NOW, 100_017),
    ("answers.ann", 1, 0.0, NOW, 100_006),
    ("dead-letters", 1, 0.0, None, None),
]
FEEDS = [
    {"name": "main", "topics": ["voevents"], "endpoint": "127.0.0.1:8099"},
    {"name": "bright", "topics": ["filter.ann.snr"], "endpoint": "127.0.0.1:8100"},
]
DOORS = {"vtp_authors": "127.0.0.1:8098", "vtp_subscribers": "127.0.0.1:8099"}


def put(rows: SiteRows, kind: str, name: str, at: int = NOW, **more: Any) -> None:
    """Note an entry; a process has a heartbeat."""
    beat = {"instance": "1", "interval": 2.0 if kind == "process" else 0.0, "ended": False}
    found = entry(kind, name, **({"owner": "", "survey": "", "topic": "", "endpoints": {}} | beat | more))
    rows.put_entry({**found, "endpoints": json.dumps(found["endpoints"])}, at)


def fill(view: View) -> SiteRows:
    """Write the site ``local`` into *view*; return what writes it."""
    rows = SiteRows(view, "local", "127.0.0.1:9092,[::1]:9093", "http://127.0.0.1:8081")
    with rows.batch():
        rows.set_topics(TOPICS)
        for owner, name, live in (("ann", "snr", True), ("bob", "nova", False)):
            found = {"version": 1, "survey": "sim", "cap": 20, "live": live}
            rows.put_filter(owner, name, found, f"filter.{owner}.{name}")
        rows.set_members([("ann.reads", "filter.ann.snr", 2, 1234), ("antares.all", "alerts.sim", 8, None)])
        put(rows, "process", "ingest-lsst", NOW - 6_000, topic="alerts.lsst", survey="lsst")
        put(rows, "process", "gateway", topic="voevents", endpoints=DOORS, capabilities={"feeds": FEEDS})
        put(rows, "process", "filters")
        put(rows, "process", "stream", survey="sim")
        put(rows, "broker", "antares", owner="ann", endpoints={"https": "antares.example:443"})
        put(rows, "producer", HOSTILE, topic="alerts.sim", owner="\x00\x1b]]>")
        put(rows, "process", "\"'&<g>", endpoints={"vtp_subscribers": "<x>&:1"})
        here = {"directory": "http://127.0.0.1:8090", "vtp_subscribers": "tls://here.example:8499"}
        put(rows, "site", "local", endpoints=here)
    return rows
