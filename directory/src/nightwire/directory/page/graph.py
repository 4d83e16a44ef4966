"""The graph of streams, their writers and readers, as nodes and edges; pure."""

from typing import Any

from nightwire.directory.model import View

MAX_STREAMS = 400
"""Most streams that are drawn."""
INTERNAL = frozenset(
    {"requests", "answers", "seen", "overflow", "accounts", "visits", "filters", "directory", "dead-letters"}
    | {"_schemas", "vtp-positions", "subscriptions", "channels", "flows", "flow-problems"}
)
"""Kinds of topics between the site's processes."""
WRITERS, SOURCES, BETWEEN, DERIVED, READERS = range(5)
"""Columns, from left to right; parties that read and write are between."""
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
        QueryError: There are more writers or readers than an answer may have rows.
    """
    nodes = {one["id"]: one for one in map(_stream, view.query(STREAMS, site, MAX_STREAMS).records())}
    edges = []
    for view_name, more in (("writers", "NULL AS members, NULL AS lag"), ("readers", "members, lag")):
        for link in view.query(LINKS.format(more, view_name), site).records():
            stream, key = nodes.get(f"topic/{link['topic']}"), f"{link['kind']}/{link['name']}"
            if stream is None or (link["kind"] == "filter" and view_name == "readers" and key not in nodes):
                continue  # of a stream that is not drawn
            party = nodes.setdefault(key, _party(link, WRITERS if view_name == "writers" else READERS))
            party["own"] &= stream["own"]
            ends = (key, stream["id"]) if view_name == "writers" else (stream["id"], key)
            fields = {name: link[name] for name in ("state", "members", "lag")}
            edges.append({"from": ends[0], "to": ends[1], "rate": stream["rate"], **fields})
    return {
        "site": next(iter(view.query(SITE, site).records()), {"site": site}),
        "processes": view.query(PROCESSES, site).records(),
        "nodes": list(nodes.values()),
        "edges": edges,
    }


def _stream(row: dict[str, Any]) -> dict[str, Any]:
    column = DERIVED if row["kind"] in ("filter", "broker", "returns", "overflow", "answers") else SOURCES
    own = row["kind"] in INTERNAL
    return {**row, "id": f"topic/{row['name']}", "shape": "topic", "column": column, "own": own}


def _party(link: dict[str, Any], column: int) -> dict[str, Any]:
    """Return the node of a writer or reader, in *column* unless it does both."""
    fields = {name: link[name] for name in ("name", "kind", "owner", "state")}
    column = COLUMN.get(link["kind"], column)
    return {**fields, "id": f"{link['kind']}/{link['name']}", "shape": "party", "column": column, "own": True}
