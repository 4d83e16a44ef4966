"""Deciding once: what is stored, sent and accounted."""

import json
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.accounts import FilterClasses, discrepancies
from nightwire.filters import _decision
from nightwire.filters._decision import Dead, Pick, accounts, choose, decide, headers
from nightwire.filters._delivery import spans
from nightwire.filters._judge import LiveFilter, Pass
from nightwire.filters._offsets import Range
from nightwire.filters._state import KEPT, State, StateError

TALLY = {"version": 2, "evaluated": 9, "passed": 2, "rejected": 6, "faulted": 1, "fault": "x", "late": False}


def row(kind: str, offset: int, detail: Any, visit: int | None = 7) -> dict[str, Any]:
    """Return a row as workers give it."""
    detail = detail if isinstance(detail, str) else json.dumps(detail)
    spot = {"kind": kind, "topic": "alerts.sim", "partition": 1, "offset": offset}
    return {**spot, "visit": visit, "alert": f"a{offset}", "detail": detail}


ROWS = [
    row("passed", 14, [["me/f", 2, 0.5]], visit=None),
    row("passed", 11, [["me/f", 2, None]]),
    row("dead", 12, "DecodeError: short"),
    row("range", 10, {"end": 22, "set": 57, "read": 10, "dead": 1, "gone": 2, "filters": {"me/f": TALLY}}),
]


def test_a_decision_survives_the_disk(tmp_path: Path) -> None:
    decision, state = decide(ROWS), State(tmp_path)
    state.keep_decision(3, _decision.dump(decision))
    assert _decision.load(state.decision(3) or "") == decision
    assert state.decision(4) is None


def test_an_account_adds_up_and_its_range_is_that_of_the_offsets() -> None:
    (account,) = accounts(decide(ROWS))
    assert (account.key, account.last) == (("filters", "alerts.sim", 1, 10), 21)
    assert (account.read, account.delivered, account.dead_lettered) == (12, 2, 1)
    assert account.rejected == {"no-filter-passed": 7, "expired": 2}
    assert account.filters == {"me/f": FilterClasses(9, 2, 6, 0, 1)}
    assert discrepancies([account]) == []


def test_a_pick_that_expired_before_it_was_sent_is_not_delivered() -> None:
    (account,) = accounts(decide(ROWS), [("alerts.sim", 1)])
    assert (account.delivered, account.rejected["expired"]) == (1, 3)
    assert discrepancies([account]) == []


def test_all_that_passed_is_chosen_in_order_of_offsets() -> None:
    picks = decide(ROWS).picks
    assert [pick.offset for pick in picks] == [11, 14]
    assert choose(reversed(picks)) == list(picks)


def test_only_what_is_wanted_is_fetched_again() -> None:
    ((work, wanted),) = spans(decide(ROWS))
    assert work == Range("alerts.sim", 1, 11, 15)
    assert {offset: type(one) for offset, one in wanted.items()} == {11: Pick, 12: Dead, 14: Pick}


def test_headers_say_where_a_copy_comes_from() -> None:
    pick = Pick("alerts.sim", 1, 14, None, "a14", (Pass("me/f", 2, 0.5),))
    assert headers(pick, pick.passes[0]) == [
        ("filter", b"me/f"),
        ("version", b"2"),
        ("visit", b""),
        ("rank", b"0.5"),
        ("survey", b"sim"),
        ("alert", b"a14"),
        ("topic", b"alerts.sim"),
        ("partition", b"1"),
        ("offset", b"14"),
    ]


def test_state_belongs_to_one_kafka(tmp_path: Path) -> None:
    State(tmp_path).claim("one")
    State(tmp_path).claim("one")
    with pytest.raises(StateError, match="another --state"):
        State(tmp_path).claim("other")


def test_filter_sets_are_kept_by_version_and_old_ones_go(tmp_path: Path) -> None:
    state, one = State(tmp_path), LiveFilter("me", "f", 1, "*", "def keep(a): return 1", "keep")
    from nightwire.filters._filterset import dump

    for number in range(1, KEPT + 5):
        state.keep_filters(number, dump([one]))
    assert state.filters(KEPT + 4) == [one]
    assert state.filters(0) == []
    with pytest.raises(StateError, match="filter set 1 is missing"):
        state.filters(1)
