"""Flows of owners, who may not write `flows` themselves: to each his own."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nightwire.core.subscriptions import FlowRecord, FlowTable, append_flow, read_flow_table
from nightwire.directory.gate import Gate
from nightwire.schemas.records import FLOW
from nightwire.schemas.serving import RefusedError, body_of
from nightwire.schemas.topics import check_name

MAX_FLOW = 128 << 10
"""Longest record of a flow. [byte]"""
MOST_OWN = 50
"""Most names of flows that somebody has who may not write `flows`, which holds a thousand."""

_writing = Lock()
"""Whose a flow is, is looked up and written as one."""


def flow_endpoints(
    bootstrap: str, gate: Gate
) -> list[tuple[str, str, Callable[[Request], Awaitable[Response]]]]:
    """Return method, path and answer of each question about flows.

    Args:
        bootstrap: Kafka's address.
        gate: Who may.
    """
    return [
        ("GET", "/flows", partial(own_flows, bootstrap, gate)),
        ("PUT", "/flows/{name}", partial(put, bootstrap, gate)),
        ("DELETE", "/flows/{name}", partial(end, bootstrap, gate)),
    ]


async def own_flows(bootstrap: str, gate: Gate, http: Request) -> Response:
    """Answer with the flows of who asks, and their versions; with all where Kafka asks nobody."""
    login = await gate.may_read(http)
    table = await run_in_threadpool(read_flow_table, bootstrap)
    mine = [one for one in table.held.values() if login is None or one[0].made_by == login.name]
    said = [(asdict(record) | {"made": record.made.isoformat()}, version) for record, version in mine]
    return JSONResponse({"flows": said})


async def put(bootstrap: str, gate: Gate, http: Request) -> Response:
    """Write a flow of who asks; the body is the record as it goes to the topic `flows`."""
    body, name = await body_of(http, MAX_FLOW), check_name(http.path_params["name"])
    found, who = FLOW.decode(body), await _writer(gate, http)
    if found["name"] != name or who not in (None, found["made_by"]):
        raise RefusedError(403, f"that is no record of a flow {name} of {who}")
    return JSONResponse({"version": await run_in_threadpool(_append_own, bootstrap, who, name, body)})


async def end(bootstrap: str, gate: Gate, http: Request) -> Response:
    """End a flow of who asks; its name, and so what waits in its queues, stays his."""
    who, name = await _writer(gate, http), check_name(http.path_params["name"])
    ended = FLOW.encode(asdict(FlowRecord(name, "", True, who, datetime.now(UTC)))) if who else None
    return JSONResponse({"version": await run_in_threadpool(_append_own, bootstrap, who, name, ended)})


async def _writer(gate: Gate, http: Request) -> str | None:
    """Return the name of who asks and may write; None where Kafka asks nobody."""
    await gate.writer(http)
    login = await gate.may_read(http)
    return login and login.name


def _append_own(bootstrap: str, who: str | None, name: str, value: bytes | None) -> int:
    """Append a record of flow *name*, which nobody else has; return its version."""
    with _writing:
        if who is not None:
            check_own(read_flow_table(bootstrap), who, name)
        return append_flow(bootstrap, name, value)


def check_own(table: FlowTable, who: str, name: str) -> None:
    """Do nothing where flow *name* is, or may become, one of *who*.

    Raises:
        RefusedError: It is another's, or he has too many.
    """
    if table.owners.get(name, who) != who:
        raise RefusedError(403, f"flow {name} is another's, or was: take another name")
    if name not in table.owners and [*table.owners.values()].count(who) >= MOST_OWN:
        raise RefusedError(403, f"{who} has made flows of {MOST_OWN} names: change one of these")
