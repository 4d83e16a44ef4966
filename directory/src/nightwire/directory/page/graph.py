"""Who writes and who reads which stream, as nodes and edges; pure."""

from typing import Any

from nightwire.directory.model import View

MOST = 400
"""Most streams that are drawn."""
OWN = frozenset(
    {"requests", "answers", "seen", "overflow", "accounts", "visits", "filters", "directory", "dead-letters"}
    | {"_schemas", "vtp-positions", "subscriptions", "channels", "flows", "flow-problems"}
)
"""Kinds of topics in which the site's processes talk to each other."""
WRITERS, SOURCES, BETWEEN, DERIVED, READERS = range(5)
"""Columns, from left to right: who reads and writes stands between."""
COLUMN = {"filter": BETWEEN, "broker": BETWEEN, "consumer": READERS, "feed": READERS}
STREAMS = """SELECT topic AS name, kind, survey, partitions, rate, newest, state, schema_id FROM streams
WHERE site = ? ORDER BY kind IN ('alerts', 'voevents', 'filter', 'broker', 'returns') DESC, topic LIMIT ?"""
PROCESSES = "SELECT name, state, silence FROM processes WHERE site = ? ORDER BY name LIMIT 500"
LINKS = """SELECT topic, kind, name, owner, state, {} FROM {} WHERE site = ? ORDER BY topic, kind, name"""
SITE = """SELECT site, bootstrap, registry, newest AS heard, age,
    (SELECT count(*) FROM known_topics AS t WHERE t.site = s.site) AS streams
FROM known_sites AS s WHERE site = ?"""


def graph(view: View, site: str) -> dict[str, Any]:
    """Return the site, its processes, and the graph of its streams: nodes, and edges between them.

    Raises:
        QueryError: More write or read than an answer may have rows.
    """
    nodes = {one["id"]: one for one in map(_stream, view.query(STREAMS, site, MOST).records())}
    edges = []
    for view_name, more in (("writers", "NULL AS members, NULL AS lag"), ("readers", "members, lag")):
        for link in view.query(LINKS.format(more, view_name), site).records():
            stream, key = nodes.get(f"topic/{link['topic']}"), f"{link['kind']}/{link['name']}"
            if stream is None or (link["kind"] == "filter" and view_name == "readers" and key not in nodes):
                continue  # of a stream that is not drawn
            party = nodes.setdefault(key, _party(link, WRITERS if view_name == "writers" else READERS))
            party["own"] &= stream["own"]
            ends = (key, stream["id"]) if view_name == "writers" else (stream["id"], key)
            said = {name: link[name] for name in ("state", "members", "lag")}
            edges.append({"from": ends[0], "to": ends[1], "rate": stream["rate"], **said})
    return {
        "site": next(iter(view.query(SITE, site).records()), {"site": site}),
        "processes": view.query(PROCESSES, site).records(),
        "nodes": list(nodes.values()),
        "edges": edges,
    }


def _stream(row: dict[str, Any]) -> dict[str, Any]:
    column = DERIVED if row["kind"] in ("filter", "broker", "returns", "overflow", "answers") else SOURCES
    own = row["kind"] in OWN
    return {**row, "id": f"topic/{row['name']}", "shape": "topic", "column": column, "own": own}


def _party(link: dict[str, Any], column: int) -> dict[str, Any]:
    """Return who writes or reads, in *column* unless it does both."""
    said = {name: link[name] for name in ("name", "kind", "owner", "state")}
    column = COLUMN.get(link["kind"], column)
    return {**said, "id": f"{link['kind']}/{link['name']}", "shape": "party", "column": column, "own": True}
