"""Accounts prove that in = out, and say where they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.accounting.accounts import (
    Account,
    FilterClasses,
    StageTotal,
    discrepancies,
    from_record,
    read_accounts,
    to_record,
    totals,
    write_account,
)
from nightwire.core.kafka import Writer, producer
from nightwire.schemas import records


def judged(first: int, last: int, **changes: object) -> Account:
    read = last - first + 1
    given_ = {"delivered": 1, "rejected": {"no-filter-passed": read - 1}} | changes
    return Account("filters", "alerts.sim", 0, first, last, read, **given_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("accounts", "wrong"),
    [
        ([], []),
        ([judged(0, 9), judged(10, 19)], []),
        ([judged(10, 19), judged(0, 9)], []),
        ([judged(0, 9), judged(11, 19)], ["filters: alerts.sim[0] leaves out offsets 10 to 10"]),
        ([judged(0, 9), judged(8, 19)], ["filters: alerts.sim[0] counts offsets 8 to 9 twice"]),
        ([judged(0, 9, delivered=0)], ["filters: 1 of 10 in no class, alerts.sim[0] from 0"]),
        ([judged(0, 9, delivered=0, capped=1)], []),
        ([judged(0, 9, delivered=0, dead_lettered=1)], []),
        ([judged(0, 9, delivered=2)], ["filters: -1 of 10 in no class, alerts.sim[0] from 0"]),
        (  # one filter lost one of the ten that it looked at
            [judged(0, 9, filters={"me/a": FilterClasses(10, 1, 8)})],
            ["filter.me.a: 1 of 10 in no class, alerts.sim[0] from 0"],
        ),
        (  # visits are no offsets: they need not join
            [Account("producer", "visit/sim", 0, n, n, 5, delivered=5) for n in (7, 900)],
            [],
        ),
    ],
)
def test_discrepancies_are_named(accounts: list[Account], wrong: list[str]) -> None:
    assert discrepancies(accounts) == wrong


def test_filters_are_stages_of_their_own() -> None:
    account = judged(0, 9, filters={"me/a": FilterClasses(10, 3, 5, 1, 1)})
    assert totals([account, judged(10, 19)]) == [
        StageTotal("filter.me.a", 10, 3, 5, 1, 1, 0),
        StageTotal("filters", 20, 2, 18, 0, 0, 0),
    ]


counts = st.integers(0, 2**40)
names = st.text("abcdefgh-", min_size=1, max_size=8)
classes = st.builds(FilterClasses, counts, counts, counts, counts, counts)
some_accounts = st.builds(
    Account,
    names, names, st.integers(0, 100), counts, counts, counts, counts,
    st.dictionaries(names, counts, max_size=3), counts, counts, counts,
    st.dictionaries(names, classes, max_size=3),
)  # fmt: skip


@given(some_accounts)
def test_an_account_survives_its_record(account: Account) -> None:
    assert from_record(records.ACCOUNT.decode(records.ACCOUNT.encode(to_record(account)))) == account


def test_a_range_that_is_replayed_counts_once(bootstrap: str) -> None:
    writer = Writer(producer(bootstrap))
    for account in (judged(0, 9), judged(10, 19), judged(0, 9)):
        write_account(writer, account)
    writer.flush()
    assert read_accounts(bootstrap) == [judged(0, 9), judged(10, 19)]
