"""The metrics pages of all processes, for Prometheus' ``http_sd``."""

import json
from collections.abc import Iterator
from typing import Any

from nightwire.directory.model import View

METRICS = "metrics"
"""The endpoint of a process's own metrics page; ``metrics:JOB`` is a page that belongs to JOB."""
PROCESSES = "SELECT name, endpoints FROM processes WHERE site = ? AND NOT ended ORDER BY name"
"""Silent processes stay, so that Prometheus alerts; those that unregistered do not."""


def targets(view: View, site: str) -> list[dict[str, Any]]:
    """Return the pages of *site*, in the form of Prometheus' ``http_sd``."""
    rows = view.query(PROCESSES, site).rows
    return [group for name, endpoints in rows for group in _pages(name, json.loads(endpoints))]


def _pages(process: str, endpoints: dict[str, str]) -> Iterator[dict[str, Any]]:
    for what, address in endpoints.items():
        kind, _, job = what.partition(":")
        if kind == METRICS:
            target, slash, path = address.partition("/")
            labels = {"job": job} if job else {"job": "nightwire", "process": process}
            more = {"__metrics_path__": f"/{path}"} if slash else {}
            yield {"targets": [target], "labels": labels | more}
