"""Many subscriptions over batches: each passes what its condition does, whatever came and went."""

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from filters.tests.helpers.random_alerts import alerts, table
from filters.tests.helpers.random_subscriptions import Subscriptions
from nightwire.filters.language import Program, compile_sql, evaluate_all
from nightwire.filters.language.subscriptions import Matcher, NormalForm, ValueSet, field_term, normal_form
from nightwire.schemas import AlertTable, survey


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
    for key in there:
        matcher.remove(key)
    assert matcher.names == []
    assert not matcher.match(columns).counts.any()


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


def edge(random_: random.Random) -> int | float:
    """Return a number near to where floats get sparser than whole numbers, or 64 bits end."""
    whole = random_.choice([0, 1 << 53, 1 << 60, (1 << 63) - 600, 5_000]) + random_.randrange(600)
    number = random_.choice([whole, whole / 7, float(whole), math.inf, 0.0])
    return random_.choice([number, -number])


def word(random_: random.Random) -> str:
    return "".join(random_.choices("abé\U0010ffff", k=random_.randrange(7)))


def some_set(random_: random.Random) -> ValueSet:
    """Return a set of several intervals, of numbers and of texts."""
    numbers = sorted({(edge(random_), random_.random() < 0.5) for _ in range(random_.randrange(6))})
    numbers = [cut for cut in numbers if cut != (math.inf, True)]
    texts = sorted({word(random_) for _ in range(random_.randrange(5))})
    return ValueSet(tuple(numbers), tuple(texts), null=random_.random() < 0.5)


@pytest.mark.parametrize("at_once", [True, False])
def test_cells_are_as_exact_as_sets(at_once: bool) -> None:
    """Also where there are far more ends than cells, and no float is what a whole number is."""
    random_ = random.Random(11)
    wholes = [int(one) for _ in range(400) if abs(one := edge(random_)) < 1 << 63]
    wholes += [(1 << 63) - 1, -(1 << 63), 1 - (1 << 63)]
    values: dict[str, list[Any]] = {
        "diaSource.visit": [None, *random_.choices(wholes, k=400)],
        "diaSource.psfFlux": [None, *(float(edge(random_)) for _ in range(400))],
        "diaSource.reason": [None, *(word(random_) for _ in range(400))],
    }
    kinds = {
        "diaSource.visit": pa.int64(),
        "diaSource.psfFlux": pa.float64(),
        "diaSource.reason": pa.string(),
    }
    arrays = {name: pa.array(some, kinds[name]) for name, some in values.items()}
    columns = AlertTable(pa.RecordBatch.from_pydict(arrays), survey("sim"))
    sets = [(name, some) for name in values for _ in range(600) if (some := some_set(random_))]
    forms = [NormalForm({field_term(name): some}) for name, some in sets]
    matcher = Matcher()
    if at_once:
        matcher.insert_many(enumerate(forms))
    else:
        for key, form in enumerate(forms):
            matcher.insert(key, form)
    found = matcher.match(columns)
    for row in range(401):
        assert found.keys(row) == [key for key, (name, some) in enumerate(sets) if values[name][row] in some]


def test_a_key_is_taken_once() -> None:
    matcher = Matcher()
    matcher.insert("a", NormalForm())
    with pytest.raises(KeyError, match="'a' already; remove it first"):
        matcher.insert("a", NormalForm())
