"""What owners are told unasked."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.notices import (
    ENOUGH,
    LASTING,
    STOPS,
    STRIKES,
    NoticeState,
    bad_filters,
    fault_notices,
    live_notices,
    suspensions,
)
from nightwire.filters.model.messages import Fault, RangeCounts
from nightwire.filters.model.offsets import OffsetRange

JUDGES = [("ada/a", 1), ("bob/b", 3)]


def counts(
    partition: int = 0,
    first: int = 10,
    evaluated: int = 100,
    faulted: Sequence[int] = (0, 0),
    faults: Mapping[int, Fault] | None = None,
    late: Sequence[int] = (),
) -> RangeCounts:
    """Return what two filters did with a range."""
    return RangeCounts(
        OffsetRange("alerts.sim", partition, first, first + 100), 100, filters=[0, 1],
        evaluated=[evaluated] * 2, passed=[0, 0], faulted=faulted, faults=faults or {}, late=late,
    )  # fmt: skip


def decision(*ranges: RangeCounts, **about: Any) -> Decision:
    """Return the decision of a batch."""
    return Decision(57, **{"versions": JUDGES, **about}, counts=ranges)


def test_an_owner_is_told_once_from_where_a_version_is_live() -> None:
    record = NoticeState(live={("ada/a", 1)})
    (one,) = live_notices(record, 7, decision(counts(), counts(1, 30)))
    assert (one.key, one.version, one.good) == ("bob/b", 3, True)
    assert one.text == "live from batch 7: alerts.sim[0] from offset 10, alerts.sim[1] from offset 30"
    assert list(live_notices(record, 8, decision(counts()))) == []
    (back,) = live_notices(record, 9, decision(counts(), versions=[("ada/a", 2), ("bob/b", 3)]))
    assert (back.key, back.version) == ("ada/a", 2)


def test_the_first_fault_of_a_version_is_told_with_its_alert() -> None:
    record = NoticeState()
    fault = Fault("ZeroDivisionError: division by zero (line 2: return 1 / 0)", "4711")
    (one,) = fault_notices(record, 7, decision(counts(faults={1: fault}), counts(1, faults={1: fault})))
    assert (one.key, one.good) == ("bob/b", False)
    assert one.text == f"failed in batch 7, first on alert 4711 of alerts.sim[0]: {fault.text}"
    assert list(fault_notices(record, 8, decision(counts(faults={1: fault})))) == []


ENDLESS = counts(late=[1], faults={1: Fault("took longer than 2 s (line 3: while True: pass)")})
USELESS = counts(faulted=(0, 100), faults={1: Fault("KeyError: 'x'", "1")})


@pytest.mark.parametrize(
    ("made", "most", "said"),
    [
        (ENDLESS, STOPS, "had to be stopped: took longer than 2 s"),
        (USELESS, STRIKES, "failed on every alert: KeyError"),
    ],
)
def test_a_filter_is_suspended_after_several_bad_batches(made: RangeCounts, most: int, said: str) -> None:
    record = NoticeState()
    found = [list(suspensions(record, number, decision(made))) for number in range(most)]
    assert found[:-1] == [[]] * (most - 1)
    (one,) = found[-1]
    assert (one.key, one.version) == ("bob/b", 3)
    assert one.text.startswith(f"suspended: {said}")
    assert one.text.endswith(f", in {most} batches")


def test_bad_batches_are_those_of_long_ago_no_more_and_each_counts_once() -> None:
    record = NoticeState()
    for number in (7, 7, 8 + LASTING, 8 + LASTING):  # a batch that is done again is looked at again
        assert list(suspensions(record, number, decision(ENDLESS))) == []
    assert len(list(suspensions(record, 9 + LASTING, decision(ENDLESS)))) == 1


def test_a_few_faults_or_very_few_alerts_are_no_strike() -> None:
    assert bad_filters([counts(faulted=(99, 50))]) == {}
    assert bad_filters([counts(evaluated=ENOUGH - 1, faulted=(ENOUGH - 1, 0))]) == {}
    assert list(bad_filters([counts(evaluated=ENOUGH // 2, faulted=(ENOUGH // 2, 0))] * 2)) == [0]
