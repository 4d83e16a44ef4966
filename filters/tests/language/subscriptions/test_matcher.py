"""Many subscriptions over batches: each passes what its condition does, whatever came and went."""

import random

import pytest

from filters.tests.helpers.random_alerts import alerts, table
from filters.tests.helpers.random_subscriptions import Subscriptions
from nightwire.filters.language import Program, compile_sql, evaluate_all
from nightwire.filters.language.subscriptions import Matcher, NormalForm, normal_form
from nightwire.schemas import AlertTable


def programs(seed: int, count: int) -> dict[int, Program]:
    return {at: compile_sql(Subscriptions(seed + at).condition(), "sim") for at in range(count)}


def agrees(matcher: Matcher, of: dict[int, Program], columns: AlertTable) -> None:
    found = matcher.match(columns)
    verdicts = evaluate_all([*of.values()], columns)
    for at in range(len(columns)):
        passing = {key for key, said in zip(of, verdicts, strict=True) if said.passed[at]}
        keys = found.keys(at)
        assert len(keys) == found.counts[at]
        assert {*keys} == passing


def test_subscriptions_come_and_go() -> None:
    random_ = random.Random(4)
    matcher, there = Matcher(), dict[int, Program]()
    columns = table(alerts(7, 120))
    for key, program in programs(50_000, 700).items():
        matcher.insert(key, program)
        there[key] = program
        if random_.random() < 0.4:
            gone = random_.choice([*there])
            matcher.remove(gone)
            del there[gone]
        if key % 100 == 99:
            agrees(matcher, there, columns)
    assert len(matcher) == len(there)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1_000, 2_000])
def test_many_subscriptions_at_once_and_more(seed: int) -> None:
    of = programs(seed, 900)
    forms = {key: form for key, one in of.items() if (form := normal_form(one))}
    matcher = Matcher()
    matcher.insert_many((key, form) for key, form in forms.items() if key % 3)
    for key, one in of.items():
        if key not in matcher:
            matcher.insert(key, one)
    agrees(matcher, of, table(alerts(seed, 200)))


def test_a_key_is_taken_once() -> None:
    matcher = Matcher()
    matcher.insert("a", NormalForm())
    with pytest.raises(KeyError, match="'a' already; remove it first"):
        matcher.insert("a", NormalForm())
