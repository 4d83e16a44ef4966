"""Filters that read what passed others: who feeds whom, what a batch reads, how a visit ends for
them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from filters.tests.helpers.overflowed import overflowed
from nightwire.filters.decision.apply_quotas import BatchContext
from nightwire.filters.decision.decision import Decision, copy_headers, decide
from nightwire.filters.decision.quota import Quotas, apply_changes
from nightwire.filters.model.chains import (
    active_derived,
    chain_depths,
    find_cycle,
    is_drained,
    readable_ends,
    unwritten_topics,
)
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import JudgedBatch, PassedAlert, RangeCounts, merge_counts
from nightwire.filters.model.offsets import OffsetRange, Visit, positions, to_offset

BRIGHT = "filter.ann.bright"


def live(name: str, *sources: str, owner: str = "ann", **about: Any) -> LiveFilter:
    """Return a filter of what *sources* hold."""
    return LiveFilter(owner, name, 1, "*", "", "keep", sources=sources, **about)


CHAIN = [live("bright"), live("red", BRIGHT), live("best", "filter.ann.red", BRIGHT, owner="bob")]


def test_a_filter_judges_its_sources_alone() -> None:
    assert live("f").wants("sim", "alerts.sim")
    assert not live("f").wants("sim", BRIGHT)
    assert live("f", BRIGHT).wants("sim", BRIGHT)
    assert not live("f", BRIGHT).wants("sim", "alerts.sim")
    assert not LiveFilter("ann", "f", 1, "lsst", "", "", sources=(BRIGHT,)).wants("sim", BRIGHT)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (CHAIN, []),
        ([live("me", "filter.ann.me")], ["ann/me", "ann/me"]),
        ([live("a", "filter.ann.b"), live("b", "filter.ann.a")], ["ann/a", "ann/b", "ann/a"]),
        (
            [live("a", "broker.fink.x"), live("x", "filter.ann.a", owner="fink", output="broker.fink.x")],
            ["ann/a", "fink/x", "ann/a"],
        ),
        ([live("a", "filter.ann.expired")], []),
    ],
    ids=["none", "itself", "two", "through a broker's stream", "of nobody"],
)
def test_a_cycle_is_found(filters: Sequence[LiveFilter], expected: list[str]) -> None:
    assert find_cycle(filters) == expected


def test_a_cycle_behind_a_filter_is_found_from_it() -> None:
    loop = [live("z", "filter.ann.a"), live("a", "filter.ann.b"), live("b", "filter.ann.a")]
    assert find_cycle(loop) == ["ann/a", "ann/b", "ann/a"]


def test_depth_is_how_many_filters_an_alert_passes_before() -> None:
    assert chain_depths(CHAIN) == [0, 1, 2]
    assert chain_depths([live("a", "alerts.sim"), live("b", "filter.ann.expired")]) == [0, 1]
    assert chain_depths([live("me", "filter.ann.me")]) == [1]


def test_a_source_to_which_nobody_writes_is_silent() -> None:
    assert unwritten_topics(["alerts.sim", BRIGHT, "filter.ann.expired"], CHAIN) == ["filter.ann.expired"]


def test_a_topic_is_read_from_the_batch_after_the_first_that_knew_its_reader() -> None:
    known = to_offset({("alerts.sim", 0): 5, (BRIGHT, 0): 9}, 3)
    assert active_derived(known, {BRIGHT}, {BRIGHT}) == {BRIGHT}
    assert active_derived(known, set(), {BRIGHT}) == set()  # begins with this batch
    assert active_derived(known, {BRIGHT}, set()) == set()  # ended before it
    assert (
        active_derived(to_offset({("alerts.sim", 0): 5}, 3), {BRIGHT}, {BRIGHT}) == set()
    )  # was not there yet
    assert active_derived(to_offset(positions(known), 3, drained=1), {BRIGHT}, {BRIGHT}) == {BRIGHT}


def test_alerts_are_always_read_and_what_passed_when_it_is_asked_for() -> None:
    ends = {("alerts.sim", 0): 7, (BRIGHT, 0): 9, ("broker.fink.x", 0): 1}
    read = readable_ends(ends, {BRIGHT})
    assert read == {("alerts.sim", 0): 7, (BRIGHT, 0): 9}
    assert is_drained({("alerts.sim", 0): 0, (BRIGHT, 0): 9}, read)
    assert not is_drained({("alerts.sim", 0): 7, (BRIGHT, 0): 8}, read)


def test_counts_of_one_range_add_up() -> None:
    work, other = OffsetRange(BRIGHT, 0, 0, 9), OffsetRange(BRIGHT, 1, 0, 3)
    sim = RangeCounts(
        work,
        5,
        1,
        passed_alerts=2,
        filters=[0, 2],
        evaluated=[4, 4],
        passed=[1, 2],
        faulted=[0, 1],
        cpu_us=[3, 4],
    )
    ztf = RangeCounts(
        work,
        3,
        passed_alerts=1,
        filters=[2, 3],
        evaluated=[3, 3],
        passed=[1, 0],
        faulted=[0, 0],
        cpu_us=[5, 6],
    )
    rest = RangeCounts(work, 1, 1, expired=2)
    total, alone = merge_counts([ztf, RangeCounts(other, 3), rest, sim])
    assert (total.read, total.undecodable, total.expired, total.passed_alerts) == (9, 2, 2, 3)
    assert (total.filters, total.evaluated, total.passed) == ([0, 2, 3], [4, 7, 3], [1, 3, 0])
    assert (total.faulted, total.cpu_us) == ([0, 1, 0], [3, 9, 6])
    assert alone == RangeCounts(other, 3)


VISIT: Visit = ("sim", 7)
SET = [live("all", cap=0), live("best", BRIGHT, cap=2, choice="best")]


def batch(
    quotas: Quotas,
    number: int,
    alerts: Sequence[PassedAlert],
    judge: int,
    filters: Sequence[LiveFilter] = SET,
    **about: Any,
) -> tuple[Decision, Quotas]:
    """Return the decision of a batch in which *alerts* passed one filter, and the quotas after
    it.
    """
    ranks = np.array([float(alert.alert) for alert in alerts], np.float64)
    judged = JudgedBatch(alerts, np.arange(len(alerts)), np.full(len(alerts), judge, np.int64), ranks)
    decision = decide(judged, quotas, filters, BatchContext(number, at=number, **about))
    return decision, apply_changes(quotas, decision.changes)


def sent(decision: Decision) -> list[str]:
    """Return the ids of the alerts that go to the chained filter's topic."""
    return [item.alert.alert for item in decision.sent() for one in item.passes if one.key == "ann/best"]


def derived(*numbers: int) -> list[PassedAlert]:
    """Return alerts in the first filter's topic."""
    return [PassedAlert(BRIGHT, 0, number, 1000 + number, 7, str(number), "sim") for number in numbers]


def test_a_visit_ends_link_by_link() -> None:
    """The best of a chain are sent when all is read that passed the filter before it, not at the
    close.
    """
    raw = [PassedAlert("alerts.sim", 0, n, n, 7, str(n)) for n in range(4)]
    reached = {("alerts.sim", 0): 4}
    one, quotas = batch(Quotas(), 0, raw, 0, closed={VISIT: {0: 3}}, reached=reached, drained=True)
    assert len(one.items) == 4
    # its topic is not read to the end yet
    two, quotas = batch(quotas, 1, derived(0, 1), 1, reached=reached)
    assert sent(two) == []
    assert quotas.due(10**9) == 0  # so the next batch does not wait for alerts
    three, quotas = batch(quotas, 2, derived(2, 3), 1, reached=reached, drained=True)
    assert sorted(sent(three)) == ["2", "3"]
    assert [alert.alert for alert, _ in (*overflowed(two), *overflowed(three))] == ["1", "0"]
    assert quotas.due(10**9) is None
    late, quotas = batch(quotas, 3, derived(9), 1, reached=reached, drained=True)
    assert sent(late) == []  # the quota is used up


def test_what_a_chain_held_is_sent_when_its_filter_is_gone() -> None:
    _, quotas = batch(Quotas(), 0, derived(1), 1)
    over, _ = batch(quotas, 1, [], 0, filters=SET[:1], drained=True, deadline=1)
    assert sent(over) == ["1"]


def test_a_copy_tells_where_its_alert_first_lay() -> None:
    decision, _ = batch(Quotas(), 0, [PassedAlert("alerts.sim", 1, 5, 0, 7, "5")], 0)
    (item,) = decision.items
    assert dict(copy_headers(item, item.passes[0])).keys().isdisjoint({"via"})
    carried = {"topic": "alerts.sim", "partition": "1", "offset": "5", "via": BRIGHT}
    judged = dict(copy_headers(item, item.passes[0], carried))
    assert {name: judged[name].decode() for name in carried} == carried
