"""Flows of owners, who may not write `flows` themselves: to each his own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
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
from nightwire.schemas.records import FLOW
from nightwire.schemas.serving import RefusedError, body_of
from nightwire.schemas.topics import check_name

MAX_FLOW = 32 << 10
"""Longest record of a flow. [byte]"""
MOST_OWN = 50
"""Most names of flows that somebody has who may not write `flows`."""
MOST_OWNERS = MOST_NAMES - 100
"""Most names of all of these: operators find room."""

BURST, PER_SECOND = 20.0, 1.0
"""How many changes an owner may make at once, and how many more come back to him in a second."""


class Turns:
    """Lets each owner, and each name, have one change at a time, and an owner so many in a time.

    Whose a flow is, is looked up and written as one; nobody waits for another owner's Kafka.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._left = clock, dict[str, tuple[float, float]]()
        self._locks = WeakValueDictionary[tuple[str, str], asyncio.Lock]()

    @asynccontextmanager
    async def of(self, who: str, name: str) -> AsyncIterator[None]:
        """Wait for the turn of *who*, who changes flow *name*.

        Raises:
            RefusedError: 429: he changes too much.
        """
        self._take(who)
        mine, its = (self._lock(one) for one in (("owner", who), ("flow", name)))
        async with mine, its:
            yield

    def _take(self, who: str) -> None:
        now = self._clock()
        left, at = self._left.get(who, (BURST, now))
        left = min(BURST, left + PER_SECOND * (now - at))
        if left < 1:
            raise RefusedError(429, f"{who} changes flows too often: {PER_SECOND:g} a second; try again soon")
        self._left[who] = left - 1, now

    def _lock(self, key: tuple[str, str]) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())


def flow_endpoints(
    bootstrap: str, authorizer: Authorizer
) -> list[tuple[str, str, Callable[[Request], Awaitable[Response]]]]:
    """Return method, path and answer of each question about flows.

    Args:
        bootstrap: Kafka's address.
        authorizer: Who may.
    """
    turns = Turns()
    return [
        ("GET", "/flows", partial(own_flows, bootstrap, authorizer)),
        ("PUT", "/flows/{name}", partial(put, bootstrap, authorizer, turns)),
        ("DELETE", "/flows/{name}", partial(end, bootstrap, authorizer, turns)),
    ]


async def own_flows(bootstrap: str, authorizer: Authorizer, http: Request) -> Response:
    """Answer with the flows of who asks, and their versions; with all where Kafka asks nobody.

    They name secrets, such as the address of a chat: other machines do not read them there.
    """
    who = await _writer(authorizer, http)
    table = await run_in_threadpool(read_flow_table, bootstrap)
    mine = [one for one in table.held.values() if who in (None, one[0].made_by)]
    said = [(asdict(record) | {"made": record.made.isoformat()}, version) for record, version in mine]
    names, problems = {one.name for one, _ in mine}, list[FlowProblem]()
    with suppress(KafkaException):  # who may not read them still answers with the flows
        problems = await run_in_threadpool(reported_problems, bootstrap)
    return JSONResponse({"flows": said, "problems": [asdict(one) for one in problems if one.flow in names]})


async def put(bootstrap: str, authorizer: Authorizer, turns: Turns, http: Request) -> Response:
    """Write a flow of who asks; the body is the record as it goes to the topic `flows`."""
    body, name = await body_of(http, MAX_FLOW), check_name(http.path_params["name"])
    found, who = FLOW.decode(body), await _writer(authorizer, http)
    if found["name"] != name or who not in (None, found["made_by"]):
        raise RefusedError(403, f"that is no record of a flow {name} of {who}")
    return await _write(bootstrap, turns, who, name, body)


async def end(bootstrap: str, authorizer: Authorizer, turns: Turns, http: Request) -> Response:
    """End a flow of who asks; its name, and so what waits in its queues, stays his."""
    who, name = await _writer(authorizer, http), check_name(http.path_params["name"])
    ended = FLOW.encode(asdict(FlowRecord(name, "", True, who, datetime.now(UTC)))) if who else None
    return await _write(bootstrap, turns, who, name, ended)


async def _writer(authorizer: Authorizer, http: Request) -> str | None:
    """Return the name of who asks and may write; None where Kafka asks nobody."""
    await authorizer.writer(http)
    login = await authorizer.may_read(http)
    return login and login.name


async def _write(bootstrap: str, turns: Turns, who: str | None, name: str, value: bytes | None) -> Response:
    """Append a record when it is the turn of *who*; without passwords it is everybody's."""
    async with turns.of(who, name) if who is not None else nullcontext():
        return JSONResponse({"version": await run_in_threadpool(_append_own, bootstrap, who, name, value)})


def _append_own(bootstrap: str, who: str | None, name: str, value: bytes | None) -> int:
    """Append a record of flow *name*, which nobody else has; return its version."""
    if who is not None:
        check_own(read_flow_table(bootstrap), who, name)
    return append_flow(bootstrap, name, value)


def check_own(table: FlowTable, who: str, name: str) -> None:
    """Do nothing where flow *name* is, or may become, one of *who*.

    Raises:
        RefusedError: It is another's, he has too many, or there are too many.
    """
    if table.owners.get(name, who) != who:
        raise RefusedError(403, f"flow {name} is another's, or was: take another name")
    if name not in table.owners and [*table.owners.values()].count(who) >= MOST_OWN:
        raise RefusedError(403, f"{who} has made flows of {MOST_OWN} names: change one of these")
    if name not in table.owners and len(table.owners) >= MOST_OWNERS:
        raise RefusedError(403, f"{MOST_OWNERS} names of flows are taken: the operator ends some")
