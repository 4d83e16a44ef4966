"""Whose a flow is, as the log of flows tells, and who may take its name."""

import asyncio
from dataclasses import asdict
from datetime import UTC, datetime

import pytest
from starlette.requests import Request

from nightwire.core.subscriptions import FlowRecord, FlowTable
from nightwire.directory.authorization import Authorizer
from nightwire.directory.serve.flows import (
    BURST,
    MAX_FLOWS_PER_OWNER,
    MAX_OWNED_FLOWS,
    ChangeLimiter,
    check_owner,
    get_flows,
)
from nightwire.schemas.records import FLOW
from nightwire.schemas.serving import KafkaAccess, RefusedError


def table(*said: tuple[str, str, str]) -> FlowTable:
    """Return the table of records of a name, a text and who made it."""
    made = FlowTable()
    for offset, (name, text, owner) in enumerate(said):
        record = FlowRecord(name, text, paused=False, made_by=owner, made=datetime.now(UTC))
        made.apply(name, FLOW.encode(asdict(record)), 0, offset)
    return made


def test_a_name_stays_with_who_had_it_first() -> None:
    found = table(("a", "x", "ann"), ("b", "x", "bob"), ("b", "", "bob"))
    assert {name: record.made_by for name, (record, _) in found.held.items()} == {"a": "ann"}
    check_owner(found, "ann", "a")
    check_owner(found, "bob", "b")
    check_owner(found, "bob", "new")
    for taken in ("a", "b"):
        with pytest.raises(RefusedError, match="another's"):
            check_owner(found, "eve", taken)
    found.apply("b", None, 0, 3)  # the operator let the name go
    check_owner(found, "eve", "b")


def test_nobody_takes_all_names() -> None:
    found = table(*((f"a{number}", "x", "ann") for number in range(MAX_FLOWS_PER_OWNER)))
    check_owner(found, "ann", "a0")
    with pytest.raises(RefusedError, match=f"{MAX_FLOWS_PER_OWNER} names"):
        check_owner(found, "ann", "one-more")


def test_all_of_them_leave_room_for_operators() -> None:
    found = table(*((f"a{number}", "x", f"ann{number}") for number in range(MAX_OWNED_FLOWS)))
    check_owner(found, "ann0", "a0")
    with pytest.raises(RefusedError, match="the operator"):
        check_owner(found, "bob", "new")


async def test_an_owner_takes_turns_and_nobody_waits_for_another() -> None:
    limiter, said = ChangeLimiter(lambda: 0.0), list[str]()

    async def change(who: str, name: str) -> None:
        async with limiter.change(who, name):
            said.append(who)

    async with limiter.change("ann", "a"):
        waiting = [asyncio.create_task(change(*one)) for one in (("ann", "b"), ("eve", "a"))]
        await change("bob", "b")
        assert said == ["bob"]
    await asyncio.gather(*waiting)
    assert sorted(said) == ["ann", "bob", "eve"]


async def test_an_owner_changes_flows_so_often() -> None:
    now = [0.0]
    limiter = ChangeLimiter(lambda: now[0])

    async def change(who: str) -> None:
        async with limiter.change(who, "a"):
            pass

    for _ in range(int(BURST)):
        await change("ann")
    with pytest.raises(RefusedError, match="ann changes flows too often"):
        await change("ann")
    await change("bob")
    now[0] = 1.0
    await change("ann")


def test_other_machines_do_not_read_secret_addresses_where_nobody_has_a_password() -> None:
    outside = Authorizer(KafkaAccess({"bootstrap.servers": "127.0.0.1:1"}), anonymous_writes=False)
    with pytest.raises(RefusedError, match="nobody has a password"):
        asyncio.run(get_flows("127.0.0.1:1", outside, Request({"type": "http", "headers": []})))
