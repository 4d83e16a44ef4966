"""What a visit's ledger counts, and what it writes."""

from datetime import UTC, datetime

from nightwire.core.accounts import totals
from nightwire.producer._ledger import Ledger
from nightwire.producer._simulate import next_visit
from nightwire.producer._visits import abandoned
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


def ledger() -> Ledger:
    """Return the ledger of a visit of five alerts, one of them refused."""
    one = Ledger("sim", 2026030143200, NOON)
    one.offered = 5
    one.refuse("does-not-fit-schema")
    for spot in ((2, 7), (0, 3), (2, 9), (2, 8)):
        one.delivered(Message(*spot))
    return one


def test_a_closed_visit_says_what_lies_where() -> None:
    record = VISIT.decode(VISIT.encode(ledger().record(NOON)))
    assert (record["written"], record["refused"], record["closed"]) == (4, 1, NOON)
    assert record["partitions"] == [
        {"partition": 0, "first": 3, "last": 3},
        {"partition": 2, "first": 7, "last": 9},
    ]


def test_its_account_adds_up() -> None:
    (total,) = totals([ledger().account()])
    assert (total.read, total.delivered, total.rejected, total.missing) == (5, 4, 1, 0)


def test_a_visit_that_nobody_closed_is_abandoned() -> None:
    open_one, closed = ledger(), Ledger("sim", 1, NOON)
    visits = {
        open_one.visit: VISIT.decode(VISIT.encode(open_one.record(None))),
        closed.visit: VISIT.decode(VISIT.encode(closed.record(NOON))),
    }
    left = abandoned(visits)
    assert list(left) == [open_one.visit]
    assert left[open_one.visit].estimated
    assert left[open_one.visit].acknowledged == 0


def test_a_visit_id_is_the_second_of_the_day_and_never_used_twice() -> None:
    assert next_visit(NOON, 0) == 2026030143200
    assert next_visit(NOON, 2026030143200) == 2026030143201
    assert next_visit(NOON, 2026030143250) == 2026030143251
