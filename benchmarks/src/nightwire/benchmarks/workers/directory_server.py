"""A process that serves a directory of made-up entries, of as many sites as it is told.

Its order has ``records`` a site and ``sites``; it prints the port that it serves at.
"""

import socket
from collections.abc import Iterator, Mapping
from typing import Any

import uvicorn
from prometheus_client import CollectorRegistry, Counter

from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.core.presence import entry
from nightwire.directory.model import SiteRows, View
from nightwire.directory.serve import Authorizer, Site, application
from nightwire.schemas.serving import KafkaAccess

BATCH = 10_000
"""Entries that are written at once."""
SAID: Mapping[str, Any] = {
    "interval": 0.0, "instance": "", "ended": False, "survey": "lsst", "topic": "alerts.lsst",
}  # fmt: skip


def fill(view: View, site: str, records: int) -> None:
    """Write *records* entries of *site* into *view*."""
    rows = SiteRows(view, site, "127.0.0.1:9092")
    for first in range(0, records, BATCH):
        with rows.batch():
            for found in entries(range(first, min(first + BATCH, records))):
                rows.put_entry(found, 1_000 + first)


def entries(numbers: range) -> Iterator[dict[str, object]]:
    """Yield an entry of each number."""
    for number in numbers:
        said = {**SAID, "owner": f"owner-{number % 100}", "capabilities": {"bands": "ugrizy"}}
        yield entry("producer", f"peer-{number}", **said) | {"endpoints": '{"kafka": "127.0.0.1:9092"}'}


def main() -> None:
    """Fill a directory, say where it is, and serve it until told to end."""
    order, view = first_order(), View()
    for number in range(order["sites"]):
        fill(view, f"site-{number}", order["records"])
    door = socket.socket(proto=socket.IPPROTO_TCP)  # so that asyncio lets no answer wait
    door.bind(("127.0.0.1", 0))
    door.listen(2048)
    answered = Counter("answered", "Requests.", ["path", "status"], registry=CollectorRegistry())
    app = application(Site(view, "site-0", "", Authorizer(KafkaAccess({}))), answered)
    emit({"port": door.getsockname()[1]})
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, backlog=2048))
    server.run(sockets=[door])
    view.close()


if __name__ == "__main__":
    main()
