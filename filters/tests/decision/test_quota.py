"""Quotas: at most so many alerts per visit and filter, however batches are cut."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.tests.helpers.overflowed import overflowed
from nightwire.core.accounting import Account, discrepancies
from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.accounts import accounts
from nightwire.filters.decision.apply_quotas import BatchContext
from nightwire.filters.decision.decision import Decision, decide
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.quota import VISITS_REMEMBERED, Quotas, apply_changes
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import JudgedBatch, PassedAlert, RangeCounts
from nightwire.filters.model.offsets import OffsetRange, Visit, VisitEnds
from nightwire.filters.reading.followers import closed_visits

FIRST = LiveFilter("me", "first", 1, "*", "", "", cap=3)
BEST = LiveFilter("me", "best", 1, "*", "", "", cap=3, choice="best")
ALL = LiveFilter("me", "all", 1, "*", "", "", cap=0)
SET = [ALL, BEST, FIRST]
PARTITIONS: list[TopicPartition] = [("alerts.sim", 0), ("alerts.sim", 1)]


@dataclass(frozen=True)
class Alert:
    """An alert as it lies in Kafka, and its rank; every filter of the set passes it."""

    alert: PassedAlert
    rank: float


@dataclass(frozen=True)
class Batch:
    """Some alerts, and the visits that were closed meanwhile."""

    alerts: Sequence[Alert]
    closed: Mapping[Visit, VisitEnds] = field(default_factory=dict)
    at: int = 0


class Log:
    """Gives alerts their offsets in Kafka, and plays batches."""

    def __init__(self) -> None:
        self.ends: dict[TopicPartition, int] = dict.fromkeys(PARTITIONS, 0)
        self.last: dict[Visit, dict[int, int]] = {}

    def alert(self, number: int, visit: int | None, rank: float = 0.0, part: int = 0, late: int = 0) -> Alert:
        partition = PARTITIONS[part]
        offset = self.ends[partition]
        self.ends[partition] += 1
        if visit is not None:
            self.last.setdefault(("sim", visit), {})[part] = offset
        return Alert(
            PassedAlert(*partition, offset, 1000 + sum(self.ends.values()) - late, visit, f"a{number}"), rank
        )

    def close(self, *visits: int) -> dict[Visit, VisitEnds]:
        """Return what `visits` says when these are closed now."""
        return {("sim", one): dict(self.last[("sim", one)]) for one in visits if ("sim", one) in self.last}


def judged(batch: Batch) -> JudgedBatch:
    """Return what workers would say of a batch."""
    n, m = len(batch.alerts), len(SET)
    ranks = np.repeat([one.rank for one in batch.alerts], m).astype(float)
    counts = []
    for partition in PARTITIONS:
        offsets = [one.alert.offset for one in batch.alerts if one.alert[:2] == partition]
        if offsets:
            k, work = len(offsets), OffsetRange(*partition, min(offsets), max(offsets) + 1)
            counts.append(
                RangeCounts(
                    work,
                    k,
                    passed_alerts=k,
                    filters=[0, 1, 2],
                    evaluated=[k] * m,
                    passed=[k] * m,
                    faulted=[0] * m,
                )
            )
    alerts = [one.alert for one in batch.alerts]
    return JudgedBatch(alerts, np.repeat(np.arange(n), m), np.tile(np.arange(m), n), ranks, [], counts)


def play(batches: Sequence[Batch], deadline: int = 10**9, crash: int = -1) -> Iterator[Decision]:
    """Yield the decisions of *batches*.

    After batch *crash* everything is read again from the disk.
    """
    with tempfile.TemporaryDirectory() as folder:
        state, quotas, reached = EngineState(Path(folder)), Quotas(), dict[TopicPartition, int]()
        for number, batch in enumerate(batches):
            for one in batch.alerts:
                partition = one.alert.topic, one.alert.partition
                reached[partition] = max(reached.get(partition, 0), one.alert.offset + 1)
            context = BatchContext(number, 1, batch.at, number, dict(reached), batch.closed, deadline)
            decision = decide(judged(batch), quotas, SET, context)
            quotas = state.keep_decision(number, decision, quotas)
            if number == crash:
                again = state.quotas(number)
                assert again == quotas
                quotas = again
            yield decision


def copies(decisions: Sequence[Decision], key: str) -> list[tuple[int | None, str]]:
    """Return (visit, alert id) of each copy that a filter's topic gets."""
    return [
        (item.alert.visit, item.alert.alert)
        for decision in decisions
        for item in decision.sent()
        for one in item.passes
        if one.key == key
    ]


def cut(decisions: Sequence[Decision], key: str) -> list[tuple[int | None, str]]:
    """Return (visit, alert id) of each alert that goes to a filter's overflow."""
    return [
        (alert.visit, alert.alert)
        for decision in decisions
        for alert, one in overflowed(decision)
        if one.key == key
    ]


def final_accounts(decisions: Sequence[Decision]) -> list[Account]:
    """Return the last account of each key, as the engine writes them."""
    written: dict[object, Account] = {}
    for decision in decisions:
        found = accounts(decision)
        for batch, released in decision.released.items():
            found += accounts(decisions[batch], [*decision.before.get(batch, ()), *released])
        written |= {account.key: account for account in found}
        assert discrepancies(written.values()) == []
    return list(written.values())


Drawn = tuple[int, int | None, float, int, int]
"""Alert number, visit, rank, partition, lateness."""

alerts = st.tuples(
    st.integers(1, 12), st.sampled_from([1, 2, 3, None]), st.sampled_from([0.0, 1.0, 2.0, 3.0, float("nan")]),
    st.integers(0, 1), st.sampled_from([0, 0, 5]),
)  # fmt: skip
nights = st.lists(
    st.tuples(st.lists(alerts, max_size=12), st.lists(st.sampled_from([1, 2, 3]), max_size=2)), max_size=6
)


def night(drawn: Sequence[tuple[Sequence[Drawn], Sequence[int]]]) -> list[Batch]:
    """Return a night of interleaved, late and repeated visits.

    An alert's rank goes with its id and visit.
    """
    log, batches, ranks = Log(), list[Batch](), dict[tuple[int, int | None], float]()
    for some, ended in drawn:
        fresh = [
            log.alert(number, visit, ranks.setdefault((number, visit), rank), part, late)
            for number, visit, rank, part, late in some
        ]
        batches.append(Batch(fresh, log.close(*ended)))
    return [*batches, Batch([], log.close(1, 2, 3))]


@pytest.mark.slow
@given(nights)
@settings(max_examples=60, deadline=None)
def test_first_fills_the_quota_of_each_visit_and_accounts_for_everything(
    drawn: list[tuple[list[Drawn], list[int]]],
) -> None:
    batches = night(drawn)
    decisions = list(play(batches))
    everything = [(one.alert.visit, one.alert.alert) for batch in batches for one in batch.alerts]
    for key, live in ((one.key, one) for one in SET):
        sent, off = copies(decisions, key), cut(decisions, key)
        # nothing lost, nothing twice
        assert sorted(map(str, sent + off)) == sorted(map(str, everything))
        for visit in {1, 2, 3} if live.cap else ():
            there = {alert for number, alert in everything if number == visit}
            admitted = {alert for number, alert in sent if number == visit}
            assert len(admitted) == min(live.cap, len(there))
    total = sum(account.filters["me/best"].passed for account in final_accounts(decisions))
    assert total == len(copies(decisions, "me/best"))


@pytest.mark.slow
@given(nights, st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_a_restart_at_any_batch_changes_nothing(
    drawn: list[tuple[list[Drawn], list[int]]], crash: int
) -> None:
    batches = night(drawn)
    assert list(play(batches)) == list(play(batches, crash=crash))


@pytest.mark.slow
@given(st.lists(alerts, max_size=40), st.lists(st.integers(1, 7), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_best_is_what_an_offline_evaluation_gives_however_batches_are_cut(
    drawn: list[Drawn], sizes: list[int]
) -> None:
    batches = night([(drawn, [])])
    pieces, rest = list[Batch](), list(batches[0].alerts)
    while rest:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(Batch(rest[:size]))
        rest = rest[size:]
    sent = copies(list(play([*pieces, batches[-1]])), "me/best")
    for visit in (1, 2, 3):
        mine = sorted(
            (one for one in batches[0].alerts if one.alert.visit == visit),
            key=lambda one: (np.inf if np.isnan(one.rank) else -one.rank, one.alert.order_key),
        )
        offline = list(dict.fromkeys(one.alert.alert for one in mine))[:3]
        assert {alert for number, alert in sent if number == visit} == set(offline)


def test_first_is_in_the_order_of_kafkas_timestamps() -> None:
    log = Log()
    # the last is the earliest
    some = [log.alert(number, 7, late=10 * number) for number in range(1, 6)]
    assert copies(list(play([Batch(some)])), "me/first") == [(7, f"a{n}") for n in (3, 4, 5)]


def test_a_late_alert_is_admitted_if_the_quota_is_not_used_up() -> None:
    log = Log()
    batches = [
        Batch([log.alert(1, 7), log.alert(2, 7)], log.close(7)),
        Batch([log.alert(n, 8) for n in range(10, 15)], log.close(8)),
    ]
    decisions = list(play([*batches, Batch([log.alert(3, 7), log.alert(4, 7), log.alert(99, 8)])]))
    for key in ("me/first", "me/best"):
        assert [one for one in copies(decisions, key) if one[0] == 7] == [(7, "a1"), (7, "a2"), (7, "a3")]
        assert cut(decisions[2:], key) == [(7, "a4"), (8, "a99")]


def test_an_alert_that_comes_again_counts_once_and_is_marked() -> None:
    log = Log()
    batches = [Batch([log.alert(n, 7) for n in (1, 2, 3, 4)]), Batch([log.alert(n, 7) for n in (1, 4, 1)])]
    decisions = list(play(batches))
    assert copies(decisions[1:], "me/first") == [(7, "a1"), (7, "a1")]
    assert cut(decisions[1:], "me/first") == [(7, "a4")]
    marks = [one.again for item in decisions[1].items for one in item.passes if one.key == "me/first"]
    assert marks == [True, True]


def test_best_waits_for_the_alerts_that_the_closed_visit_still_has() -> None:
    log = Log()
    early, late = [log.alert(1, 7, 1.0)], [log.alert(2, 7, 2.0, part=1)]
    one, two = play([Batch(early, log.close(7)), Batch(late)])
    assert copies([one], "me/best") == []
    assert sorted(copies([two], "me/best")) == [(7, "a1"), (7, "a2")]
    assert list(two.released) == [0]


def test_best_is_sent_at_the_deadline_when_nobody_closes_the_visit() -> None:
    log = Log()
    batches = [Batch([log.alert(1, 7)], at=1000), Batch([], at=1999), Batch([], at=2000)]
    sent = [copies([one], "me/best") for one in play(batches, deadline=1000)]
    assert sent == [[], [], [(7, "a1")]]


def test_alerts_without_a_visit_have_no_cap() -> None:
    log = Log()
    decisions = list(play([Batch([log.alert(n, None) for n in range(10)])]))
    assert len(copies(decisions, "me/first")) == len(copies(decisions, "me/best")) == 10


def test_what_best_cuts_off_is_told_visit_by_visit_however_the_interpreter_hashes() -> None:
    log = Log()
    alerts = [log.alert(n, 20 - n % 20) for n in range(200)]
    visits = [visit for visit, _ in cut(list(play([Batch(alerts)])), "me/best")]
    assert visits == [visit for visit in range(1, 21) for _ in range(10 - 3)]


def test_old_visits_are_forgotten_but_never_what_they_hold() -> None:
    log, quotas = Log(), Quotas()
    for visit in range(VISITS_REMEMBERED + 10):
        batch = Batch([log.alert(1, visit)], at=visit)
        decision = decide(judged(batch), quotas, SET, BatchContext(visit, at=visit))
        quotas = apply_changes(quotas, decision.changes)
    assert len(quotas.visits) == VISITS_REMEMBERED + 10
    closing: dict[Visit, VisitEnds] = {("sim", visit): {} for visit in range(VISITS_REMEMBERED + 10)}
    over = decide(judged(Batch([])), quotas, SET, BatchContext(VISITS_REMEMBERED + 10, closed=closing))
    quotas = apply_changes(quotas, over.changes)
    assert sorted(visit for _, visit in quotas.visits) == list(range(10, VISITS_REMEMBERED + 10))
    assert len(copies([over], "me/best")) == VISITS_REMEMBERED + 10


def test_a_smaller_cap_cuts_what_is_held() -> None:
    log = Log()
    first = Batch([log.alert(n, 7, float(n)) for n in (1, 2, 3)])
    before = decide(judged(first), Quotas(), SET, BatchContext(0))
    smaller = [ALL, replace(BEST, cap=1), FIRST]
    context = BatchContext(1, closed={("sim", 7): {}})
    after = decide(
        judged(Batch([log.alert(4, 7, 0.0)])), apply_changes(Quotas(), before.changes), smaller, context
    )
    assert copies([after], "me/best") == [(7, "a3")]
    assert sorted(cut([after], "me/best")) == [(7, "a1"), (7, "a2"), (7, "a4")]


def test_the_quotas_are_stored_now_and_then_and_made_of_decisions_between(tmp_path: Path) -> None:
    log, quotas, state = Log(), Quotas(), EngineState(tmp_path)
    for number in range(27):
        decision = decide(judged(Batch([log.alert(number, number % 4)])), quotas, SET, BatchContext(number))
        quotas = state.keep_decision(number, decision, quotas)
        assert state.quotas(number) == quotas
    assert json.loads((state.checkpoint / "places" / "20.json").read_text())


def test_a_decision_is_kept_as_long_as_something_of_it_is_held(tmp_path: Path) -> None:
    log, quotas, state = Log(), Quotas(), EngineState(tmp_path)
    for number in range(40):
        some = [log.alert(1, 7)] if number == 2 else []
        quotas = state.keep_decision(
            number, decide(judged(Batch(some)), quotas, SET, BatchContext(number)), quotas
        )
    assert state.decision(2) is not None
    assert state.decision(3) is None
    closed = BatchContext(40, closed={("sim", 7): {}})
    over = decide(judged(Batch([])), quotas, SET, closed)
    quotas = state.keep_decision(40, over, quotas)
    assert [*over.released] == [2]
    assert state.decision(2) is not None, "its accounts are written anew once this is sent"
    state.keep_decision(41, decide(judged(Batch([])), quotas, SET, BatchContext(41)), quotas)
    assert state.decision(2) is None


@pytest.mark.parametrize(("when", "expected"), [(None, {}), ("2026", {("sim", 7): {0: 12}})])
def test_a_visit_is_closed_when_its_record_says_so(
    when: str | None, expected: dict[Visit, VisitEnds]
) -> None:
    record = {
        "survey": "sim",
        "visit": 7,
        "closed": when,
        "partitions": [{"partition": 0, "first": 3, "last": 12}],
    }
    assert closed_visits([record]) == expected
