"""What a visit's counts counts, and what it writes."""

import socket
from datetime import UTC, datetime, timedelta

import pytest

from nightwire.core.accounting import totals
from nightwire.producer.visits.abandoned import KnownVisit, abandoned
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.writer_id import WriterId
from nightwire.schemas.records import VISIT

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Message:
    """A delivered message."""

    def __init__(self, partition: int, offset: int) -> None:
        self._spot = (partition, offset)

    def partition(self) -> int:
        """Return where it lies."""
        return self._spot[0]

    def offset(self) -> int:
        """Return where in its partition it lies."""
        return self._spot[1]


def counts() -> VisitCounts:
    """Return the counts of a visit of five alerts, one of them refused."""
    one = VisitCounts("sim", 2026030143200, NOON)
    one.offered = 5
    one.refuse("does-not-fit-schema")
    for place in ((2, 7), (0, 3), (2, 9), (2, 8)):
        one.delivered(Message(*place))
    return one


def test_a_closed_visit_says_what_lies_where() -> None:
    record = VISIT.decode(VISIT.encode(counts().record(NOON)))
    assert (record["written"], record["refused"], record["closed"]) == (4, 1, NOON)
    assert record["partitions"] == [
        {"partition": 0, "first": 3, "last": 3},
        {"partition": 2, "first": 7, "last": 9},
    ]


def test_its_account_adds_up() -> None:
    (total,) = totals([counts().account()])
    assert (total.read, total.delivered, total.rejected, total.missing) == (5, 4, 1, 0)


HERE, DEAD, FAR = WriterId.own(), WriterId(socket.gethostname(), 1 << 22, 5), WriterId("elsewhere", 1, 1)


@pytest.mark.parametrize(
    ("writer", "closed", "minutes", "left"),
    [
        (DEAD, False, 0, True),
        (HERE, False, 10_000, False),
        (FAR, False, 14, False),
        (FAR, False, 16, True),
        (DEAD, True, 0, False),
        (None, False, 10_000, False),
    ],
)
def test_a_visit_is_abandoned_when_it_is_open_and_its_writer_dead(
    writer: WriterId | None, closed: bool, minutes: int, left: bool
) -> None:
    one = counts()
    record = VISIT.decode(VISIT.encode(one.record(NOON if closed else None)))
    known = {one.visit: KnownVisit(record, writer)}
    assert bool(abandoned(known, NOON + timedelta(minutes=minutes))) is left


def test_who_writes_is_read_back() -> None:
    assert WriterId.parse(bytes(HERE)) == HERE
    assert WriterId.parse(b"") is None
    assert WriterId.parse(b"a b c") is None


@pytest.mark.parametrize(
    ("of", "visit", "replay", "holds"),
    [
        (None, 7, None, True),
        (None, 7, 99, False),
        (None, 8, None, False),
        (99, 7, 99, True),
        (99, 7, None, False),
        (99, 8, 99, False),
    ],
)
def test_an_alert_belongs_to_the_visit_that_it_names_in_the_replay_that_it_names(
    of: int | None, visit: int | None, replay: int | None, holds: bool
) -> None:
    assert KnownVisit({"visit": 7}, HERE, of).holds(visit, replay) is holds


def test_a_replay_holds_all_its_alerts() -> None:
    whole = KnownVisit({"visit": 99}, HERE, 99)
    assert whole.holds(7, 99)
    assert whole.holds(None, 99)
    assert whole.has_account


def test_a_ledger_comes_back_from_its_text() -> None:
    assert VisitCounts.from_text(counts().as_text()) == counts()
