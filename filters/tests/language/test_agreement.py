"""Compiled filters, Python itself and SQL agree on every alert, odd ones among them.

They share no code below the parsers: Python calls the function with one alert after the other,
SQLite judges rows, and the compiled program whole columns.  SQLite has no NaN (it takes it for
NULL, as our SQL does), divides whole numbers without remainder, and compares texts with numbers,
where ours refuses: the conditions keep clear of the latter two.
"""

import sys

import pytest

from filters.tests.helpers.agreement import Account, batches, compared, conditions
from filters.tests.helpers.random_python import Filters
from nightwire.filters.language.operations import OPERATIONS, SQL
from nightwire.filters.language.sql import ANY_ARGUMENTS, COMPARISONS, ONE_ARGUMENT, TWO_ARGUMENTS


@pytest.mark.slow
def test_compiled_filters_say_what_python_says() -> None:
    account = Account()
    for seeds in batches(100):
        compared([Filters(seed).source() for seed in seeds], seeds.start, account)
    account.check()
    assert account.filters > 85


@pytest.mark.slow
def test_compiled_python_and_sql_and_sqlite_agree() -> None:
    account = Account()
    for seeds in batches(100):
        conditions(seeds, account)
    account.check()
    assert account.needs_python == 0


OF_SQL = {
    f"sql.{name}"
    for name in (
        *COMPARISONS.values(), *ONE_ARGUMENT.values(), *TWO_ARGUMENTS.values(), *ANY_ARGUMENTS.values(),
        "and", "or", "not", "null", "coalesce", "like", "field", "neg", "+", "-", "*", "/", "round_to",
    )
}  # fmt: skip
"""All that SQL's words are made of."""

WANTED = ({*OPERATIONS} - {*SQL} - {name for name in OPERATIONS if name.startswith("sql.")}) | OF_SQL


LEAST = {"null": 0.1, "NaN": 0.03, "infinite": 0.01, "empty list": 0.005, "overflow": 0.01, "odd text": 0.03}
"""The least share of each odd kind in what filters read; a list counts once itself."""


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_ten_thousand_filters_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """Half of them whole functions in Python, half conditions that SQL can say, too."""
    functions, said_by_both = Account(), Account()
    for seeds in batches(5_400):
        compared([Filters(10_000 + seed).source() for seed in seeds], 10_000 + seeds.start, functions)
        conditions(range(20_000 + seeds.start, 20_000 + seeds.stop), said_by_both)
    whole = functions + said_by_both
    with capsys.disabled():
        sys.stdout.write(f"\nfunctions: {functions.said(WANTED - OF_SQL)}\n")
        sys.stdout.write(f"conditions: {said_by_both.said(OF_SQL)}\nboth: {whole.said(WANTED)}\n")
    functions.check()
    said_by_both.check()
    assert whole.filters >= 10_000
    assert {kind: share for kind, share in whole.shares().items() if share < LEAST[kind]} == {}
    assert {name: whole.operations[name] for name in WANTED if whole.operations[name] < 100} == {}
