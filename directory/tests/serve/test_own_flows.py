"""Whose a flow is, as the log of flows tells, and who may take its name."""

from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from nightwire.core.subscriptions import FlowRecord, FlowTable
from nightwire.directory.serve.flows import MOST_OWN, check_own
from nightwire.schemas.records import FLOW
from nightwire.schemas.serving import RefusedError


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
    check_own(found, "ann", "a")
    check_own(found, "bob", "b")
    check_own(found, "bob", "new")
    for taken in ("a", "b"):
        with pytest.raises(RefusedError, match="another's"):
            check_own(found, "eve", taken)
    found.apply("b", None, 0, 3)  # the operator let the name go
    check_own(found, "eve", "b")


def test_nobody_takes_all_names() -> None:
    found = table(*((f"a{number}", "x", "ann") for number in range(MOST_OWN)))
    check_own(found, "ann", "a0")
    with pytest.raises(RefusedError, match=f"{MOST_OWN} names"):
        check_own(found, "ann", "one-more")
