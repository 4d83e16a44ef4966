"""Flows of owners without right to write `flows`: each may change his own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from weakref import WeakValueDictionary

from confluent_kafka import KafkaException
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nightwire.core.subscriptions import (
    MOST_NAMES,
    FlowProblem,
    FlowRecord,
    FlowTable,
    append_flow,
    read_flow_table,
    reported_problems,
)
from nightwire.directory.authorization import Authorizer
from nightwire.directory.mediator import Endpoint
from nightwire.schemas.records import FLOW
from nightwire.schemas.serving import RefusedError, body_of
from nightwire.schemas.topics import check_name

MAX_FLOW = 32 << 10
"""Longest record of a flow. [byte]"""
MAX_FLOWS_PER_OWNER = 50
"""Most names of flows of one owner."""
MAX_OWNED_FLOWS = MOST_NAMES - 100
"""Most names of flows of all owners; the others are the operators'."""

BURST, PER_SECOND = 20.0, 1.0
"""The token bucket of an owner's changes."""


class ChangeLimiter:
    """Serialises the changes of each owner and of each flow, and limits each owner's rate.

    So a flow's owner is checked and written as one; nobody waits for another owner's Kafka.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._left = clock, dict[str, tuple[float, float]]()
        self._locks = WeakValueDictionary[tuple[str, str], asyncio.Lock]()

    @asynccontextmanager
    async def change(self, owner: str, name: str) -> AsyncIterator[None]:
        """Hold the locks of *owner* and of flow *name* within the block.

        Raises:
            RefusedError: 429: he has changed too many.
        """
        self._take_token(owner)
        async with self._lock(("owner", owner)), self._lock(("flow", name)):
            yield

    def _take_token(self, owner: str) -> None:
        now = self._clock()
        left, at = self._left.get(owner, (BURST, now))
        left = min(BURST, left + PER_SECOND * (now - at))
        if left < 1:
            often = f"{PER_SECOND:g} a second; try again soon"
            raise RefusedError(429, f"{owner} changes flows too often: {often}")
        self._left[owner] = left - 1, now

    def _lock(self, key: tuple[str, str]) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())


def flow_endpoints(bootstrap: str, authorizer: Authorizer) -> list[Endpoint]:
    """Return the endpoints of flows.

    Args:
        bootstrap: Kafka's address.
        authorizer: Of the requests.
    """
    limiter = ChangeLimiter()
    return [
        ("GET", "/flows", partial(get_flows, bootstrap, authorizer)),
        ("PUT", "/flows/{name}", partial(put_flow, bootstrap, authorizer, limiter)),
        ("DELETE", "/flows/{name}", partial(end_flow, bootstrap, authorizer, limiter)),
    ]


async def get_flows(bootstrap: str, authorizer: Authorizer, http: Request) -> Response:
    """Answer with the user's flows, their versions and problems; without passwords with all.

    They have secrets, such as the URL of a chat: without passwords other machines get none.
    """
    owner = await _owner(authorizer, http)
    table = await run_in_threadpool(read_flow_table, bootstrap)
    mine = [one for one in table.held.values() if owner in (None, one[0].made_by)]
    flows = [(asdict(record) | {"made": record.made.isoformat()}, version) for record, version in mine]
    names, problems = {one.name for one, _ in mine}, list[FlowProblem]()
    with suppress(KafkaException):  # without right to read them
        problems = await run_in_threadpool(reported_problems, bootstrap)
    return JSONResponse({"flows": flows, "problems": [asdict(one) for one in problems if one.flow in names]})


async def put_flow(bootstrap: str, authorizer: Authorizer, limiter: ChangeLimiter, http: Request) -> Response:
    """Write a flow of the user; the body is the record of the topic `flows`."""
    body, name = await body_of(http, MAX_FLOW), check_name(http.path_params["name"])
    found, owner = FLOW.decode(body), await _owner(authorizer, http)
    if found["name"] != name or owner not in (None, found["made_by"]):
        raise RefusedError(403, f"that is no record of a flow {name} of {owner}")
    return await _write(bootstrap, limiter, owner, name, body)


async def end_flow(bootstrap: str, authorizer: Authorizer, limiter: ChangeLimiter, http: Request) -> Response:
    """End a flow of the user; its name, and so its queues, stay his."""
    owner, name = await _owner(authorizer, http), check_name(http.path_params["name"])
    ended = FLOW.encode(asdict(FlowRecord(name, "", True, owner, datetime.now(UTC)))) if owner else None
    return await _write(bootstrap, limiter, owner, name, ended)


async def _owner(authorizer: Authorizer, http: Request) -> str | None:
    """Return the name of a user who may write; None where Kafka has no passwords."""
    await authorizer.writer(http)
    login = await authorizer.may_read(http)
    return login and login.name


async def _write(
    bootstrap: str, limiter: ChangeLimiter, owner: str | None, name: str, value: bytes | None
) -> Response:
    """Append a record, within the owner's limits where there are passwords."""
    async with limiter.change(owner, name) if owner is not None else nullcontext():
        return JSONResponse({"version": await run_in_threadpool(_append_own, bootstrap, owner, name, value)})


def _append_own(bootstrap: str, owner: str | None, name: str, value: bytes | None) -> int:
    """Append a record of flow *name* if it is no other owner's; return its version."""
    if owner is not None:
        check_owner(read_flow_table(bootstrap), owner, name)
    return append_flow(bootstrap, name, value)


def check_owner(table: FlowTable, owner: str, name: str) -> None:
    """Check that flow *name* is, or may become, one of *owner*.

    Raises:
        RefusedError: It is another's, he has too many, or there are too many.
    """
    if table.owners.get(name, owner) != owner:
        raise RefusedError(403, f"flow {name} is another's, or was: take another name")
    if name not in table.owners and [*table.owners.values()].count(owner) >= MAX_FLOWS_PER_OWNER:
        raise RefusedError(403, f"{owner} has made flows of {MAX_FLOWS_PER_OWNER} names: change one of these")
    if name not in table.owners and len(table.owners) >= MAX_OWNED_FLOWS:
        raise RefusedError(403, f"{MAX_OWNED_FLOWS} names of flows are taken: the operator ends some")
