"""Deciding once: what is stored, sent and accounted."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.accounting import FilterClasses, discrepancies
from nightwire.core.runtime import StateError
from nightwire.filters.decision.accounts import Unsent, accounts
from nightwire.filters.decision.apply_quotas import BatchContext
from nightwire.filters.decision.decision import Decision, DeliveryItem, copy_headers, decide
from nightwire.filters.decision.engine_state import KEPT, EngineState
from nightwire.filters.decision.quota import Quotas
from nightwire.filters.delivery.deliver import fetch_plan
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import (
    DEAD,
    PASSED,
    Fault,
    Pass,
    PassedAlert,
    RangeCounts,
    UndecodableRecord,
    judged_batch,
    rows_to_arrow,
)
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.fetch import offset_runs

PARTITION = ("alerts.sim", 1)
COUNTS = RangeCounts(
    OffsetRange(*PARTITION, 10, 22), read=10, undecodable=1, expired=2, passed_alerts=2,
    filters=[0], evaluated=[9], passed=[2], faulted=[1], faults={0: Fault("x", "a13")},
)  # fmt: skip


def passed(offset: int, rank: float = float("nan"), visit: int | None = 7) -> tuple[Any, ...]:
    """Return the row of an alert that passed filter 0."""
    return (PASSED, *PARTITION, offset, 1000 + offset, visit, f"a{offset}", [0], [rank], None, None)


ROWS = [
    passed(14, 0.5, visit=None),
    passed(11),
    (DEAD, *PARTITION, 12, None, None, None, None, None, "DecodeError: short", None),
    COUNTS.row(),
]


def live(**about: Any) -> LiveFilter:
    """Return the filter me/f."""
    return LiveFilter("me", "f", 2, "*", "def keep(a): return 1", "keep", **about)


def decided(rows: Sequence[tuple[Any, ...]] = ROWS, **about: Any) -> Decision:
    """Return the decision for rows as workers give them."""
    import pyarrow as pa

    table = pa.Table.from_batches([rows_to_arrow(rows)])
    return decide(judged_batch(table), Quotas(), [live(**about)], BatchContext(3, filters=57, at=5000))


@pytest.mark.parametrize("about", [{}, {"cap": 1}, {"choice": "best"}])
def test_a_decision_survives_the_disk(tmp_path: Path, about: dict[str, Any]) -> None:
    decision, state = decided(**about), EngineState(tmp_path)
    after = state.keep_decision(3, decision, Quotas())
    assert state.decision(3) == decision
    assert state.decision(4) is None
    assert (state.newest_decision(), state.quotas(3)) == (3, after)


def test_an_account_adds_up_and_its_range_is_that_of_the_offsets() -> None:
    (account,) = accounts(decided())
    assert (account.key, account.last) == (("filters", "alerts.sim", 1, 10), 21)
    assert (account.read, account.delivered, account.dead_lettered) == (12, 2, 1)
    assert account.rejected == {"no-filter-passed": 7, "expired": 2}
    assert account.filters == {"me/f": FilterClasses(9, 2, 6, 0, 1)}
    assert discrepancies([account]) == []


def test_two_ranges_of_a_partition_have_each_its_own_account() -> None:
    about: dict[str, Any] = {"filters": [0], "evaluated": [5], "passed": [1], "faulted": [0]}
    ends = [(10, 12), (12, 22)]
    rows = [
        RangeCounts(OffsetRange(*PARTITION, *range_), read=5, passed_alerts=1, **about).row()
        for range_ in ends
    ]
    both = accounts(decided([passed(11), passed(14), *rows]))
    assert [(one.first, one.last, one.delivered) for one in both] == [(10, 11, 1), (12, 21, 1)]
    assert [one.filters["me/f"] for one in both] == [FilterClasses(5, 1, 4, 0, 0)] * 2
    assert discrepancies(both) == []


def test_what_was_cut_off_is_capped() -> None:
    rows = [passed(11), passed(14), *ROWS[2:]]
    (account,) = accounts(decided(rows, cap=1))
    assert (account.delivered, account.capped) == (1, 1)
    assert account.filters == {"me/f": FilterClasses(9, 1, 6, 1, 1)}
    assert discrepancies([account]) == []


def test_what_is_held_is_capped_until_it_is_sent() -> None:
    rows = [passed(11, 1.0), passed(14, 2.0), *ROWS[2:]]
    decision = decided(rows, choice="best")
    (account,) = accounts(decision)
    assert (account.delivered, account.capped, account.filters["me/f"]) == (
        0,
        2,
        FilterClasses(9, 0, 6, 2, 1),
    )
    (later,) = accounts(decision, [DeliveryItem(passed_alert(14), (Pass("me/f", 2, 2.0),))])
    assert (later.key, later.delivered, later.capped) == (account.key, 1, 1)
    assert later.filters["me/f"] == FilterClasses(9, 1, 6, 1, 1)
    assert discrepancies([account]) == discrepancies([later]) == []


def test_a_pick_that_expired_before_it_was_sent_is_not_delivered() -> None:
    (account,) = accounts(decided(), unsent=Unsent(lost=[(*PARTITION, 11)]))
    assert (account.delivered, account.rejected["expired"]) == (1, 3)
    assert discrepancies([account]) == []


def test_a_copy_that_a_transform_cannot_make_is_its_fault_and_dead_lettered_where_nobody_else_got_it() -> (
    None
):
    pass_of = partial(Pass, version=2)
    items = [
        DeliveryItem(passed_alert(11), (pass_of("me/f"),)),
        DeliveryItem(passed_alert(14), (pass_of("me/f"), pass_of("me/made"))),
    ]
    counts = replace(COUNTS, filters=[0, 1], evaluated=[9, 9], passed=[2, 1], faulted=[1, 0])
    decision = replace(decided(), versions=[("me/f", 2), ("me/made", 2)], items=items, counts=[counts])
    malformed = [((*PARTITION, 11), "me/f"), ((*PARTITION, 14), "me/made")]
    (account,) = accounts(decision, unsent=Unsent(malformed=malformed))
    # 14 went out untouched
    assert (account.read, account.delivered, account.dead_lettered) == (12, 1, 2)
    assert account.filters == {"me/f": FilterClasses(9, 1, 6, 0, 2), "me/made": FilterClasses(9, 0, 8, 0, 1)}
    assert discrepancies([account]) == []


def test_what_could_not_be_sent_is_remembered_by_batch(tmp_path: Path) -> None:
    state = EngineState(tmp_path)
    first = Unsent({(*PARTITION, 11)}, {((*PARTITION, 14), "me/made")})
    state.keep_unsent(3, first)
    state.keep_unsent(3, Unsent({(*PARTITION, 12)}))
    assert state.unsent(3) == Unsent({(*PARTITION, 11), (*PARTITION, 12)}, first.malformed)
    assert state.unsent(4) == Unsent()
    assert first.of({(*PARTITION, 14)}) == Unsent(frozenset(), first.malformed)


def test_what_could_not_be_sent_is_forgotten_with_its_decision(tmp_path: Path) -> None:
    state = EngineState(tmp_path)
    for batch in range(2 * KEPT):
        state.keep_decision(batch, decided([]), Quotas())
        state.keep_unsent(batch, Unsent({(*PARTITION, batch)}))
    files = (state.checkpoint / "unsent").iterdir()
    assert sorted(int(file.stem) for file in files) == [*range(KEPT, 2 * KEPT)]


def test_all_that_passed_is_chosen_in_order_of_offsets() -> None:
    assert [item.alert.offset for item in decided().items] == [11, 14]


def test_only_what_is_wanted_is_fetched_again() -> None:
    ((work, wanted),) = fetch_plan(decided())
    assert work == OffsetRange("alerts.sim", 1, 11, 15)
    assert {offset: [type(one) for one in some] for offset, some in wanted.items()} == {
        11: [DeliveryItem],
        12: [UndecodableRecord],
        14: [DeliveryItem],
    }


def test_a_wide_gap_is_not_read() -> None:
    assert offset_runs([1, 2, 101, 202, 1000]) == [[1, 2, 101], [202], [1000]]
    assert offset_runs([]) == []


def passed_alert(offset: int, visit: int | None = None) -> PassedAlert:
    """Return an alert that passed."""
    return PassedAlert(*PARTITION, offset, 1000 + offset, visit, f"a{offset}")


def test_headers_say_where_a_copy_comes_from() -> None:
    item = DeliveryItem(passed_alert(14), (Pass("me/f", 2, 0.5), Pass("me/g", 1, again=True)))
    assert copy_headers(item, item.passes[0]) == [
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
    assert copy_headers(item, item.passes[1])[-1] == ("duplicate", b"yes")


def test_state_belongs_to_one_kafka(tmp_path: Path) -> None:
    EngineState(tmp_path).claim("one")
    EngineState(tmp_path).claim("one")
    with pytest.raises(StateError, match="another --state"):
        EngineState(tmp_path).claim("other")


def test_filter_sets_are_kept_by_version_and_old_ones_go(tmp_path: Path) -> None:
    state, one = EngineState(tmp_path), live(fields=("flux",), choice="best")
    from nightwire.filters.model.filter_set import dump

    for number in range(1, KEPT + 5):
        state.keep_filters(number, dump([one]))
    assert state.filters(KEPT + 4) == [one]
    assert state.filters(0) == []
    with pytest.raises(StateError, match="filter set 1 is missing"):
        state.filters(1)
