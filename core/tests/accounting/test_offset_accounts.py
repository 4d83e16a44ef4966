"""Accounts of ranges of offsets, as the stages that read topics keep them."""

from nightwire.core.accounting import RANGE, Account, OffsetAccounts, discrepancies

SOURCE = ("voevents", 3)


def test_what_was_counted_is_one_account_until_it_is_long_enough() -> None:
    accounts = OffsetAccounts("gateway", positions={SOURCE: 5})
    accounts.count(SOURCE, 5, delivered=1)
    accounts.count(SOURCE, 8, read=2, dead_lettered=1, rejected={"old": 1})  # 6 and 7 are one hole
    (one,) = accounts.changed()
    assert one == Account(
        "gateway", "voevents", 3, 5, 8, read=3, delivered=1, rejected={"old": 1}, dead_lettered=1
    )
    assert accounts.changed() == []
    accounts.count(SOURCE, RANGE + 5, read=1, delivered=1)
    accounts.count(SOURCE, RANGE + 6, read=1, delivered=1)
    (long, after) = (*accounts.changed(), one)
    assert (long.first, long.last, after.first) == (RANGE + 6, RANGE + 6, 5)
    assert discrepancies([long, Account("gateway", "voevents", 3, 5, RANGE + 5, read=4, delivered=4)]) == []


def test_a_record_that_is_counted_is_passed_over() -> None:
    before = Account("gateway", *SOURCE, 0, 9, read=10, delivered=10)
    other = Account("filters", *SOURCE, 0, 99, read=100, delivered=100)
    accounts = OffsetAccounts("gateway", [before, other])
    assert accounts.position(SOURCE) == 10
    accounts.count(SOURCE, 9, delivered=1)
    assert accounts.changed() == []
    accounts.count(SOURCE, 10, delivered=1)
    assert [(one.first, one.last) for one in accounts.changed()] == [(10, 10)]


def test_a_partition_may_begin_anew() -> None:
    accounts = OffsetAccounts("gcn", [Account("gcn", *SOURCE, 0, 9, read=10)])
    accounts.begin(SOURCE, 3)
    accounts.count(SOURCE, 3, rejected={"test": 1})
    assert [(one.first, one.last, one.read) for one in accounts.changed()] == [(3, 3, 1)]
    assert accounts.sources == {SOURCE}
