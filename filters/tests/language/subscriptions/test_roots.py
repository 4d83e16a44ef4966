"""The covering roots after any inserts and removals: what would come out if all were new."""

import random
from collections.abc import Mapping
from functools import cache

import pytest

from nightwire.filters.language import Program, compile_sql
from nightwire.filters.language.subscriptions import NormalForm, Roots, covers, normal_form

TRUE, NEVER, OTHER = "TRUE", "FALSE", "magnitude < 20 OR snr > 5"
CONDITIONS = (TRUE, NEVER, OTHER, "snr > 5 OR magnitude < 20", "snr > 3 AND snr < 3")


def some_condition(random_: random.Random) -> str:
    """Return a condition on one or two terms with round limits, of which many cover each other."""
    if random_.random() < 0.08:
        return random_.choice(CONDITIONS)
    parts = [
        f"{term} {random_.choice(['<', '>', '<=', 'BETWEEN 3 AND'])} {random_.randrange(10)}"
        for term in random_.sample(["magnitude", "snr", "ABS(dec)"], random_.choice([1, 2, 2]))
    ]
    if random_.random() < 0.5:
        parts.append(f"band IN ('{random_.choice('gri')}', '{random_.choice('gri')}')")
    return " AND ".join(parts)


@cache
def form_of(program: Program) -> NormalForm | None:
    return normal_form(program)


def covered(one: Program, other: Program) -> bool:
    """Return whether *one* covers *other*, as it is defined."""
    first, second = form_of(one), form_of(other)
    if first is None or second is None:
        same = first is second and one.nodes == other.nodes
        return same or first == NormalForm() or (second is not None and second.empty)
    return covers(first, second)


def check(roots: Roots, there: Mapping[int, Program]) -> None:
    """Check that roots are those that no other covers, the oldest of those that are the same."""
    above = {
        key: [one for one, other in there.items() if one != key and covered(other, there[key])]
        for key in there
    }
    expected = {
        key
        for key, some in above.items()
        if all(covered(there[key], there[one]) and key < one for one in some)
    }
    assert {*roots} == expected
    for key in there:
        root = roots.root_of(key)
        assert root in expected
        assert root == key or covered(there[root], there[key])
        assert (key in roots.covered_by(root)) == (key != root)


@pytest.mark.parametrize("seed", range(4))
def test_roots_are_what_would_come_out_anew(seed: int) -> None:
    random_ = random.Random(seed)
    roots, there = Roots(), dict[int, Program]()
    for key in range(250):
        there[key] = compile_sql(some_condition(random_), "lsst")
        roots.insert(key, there[key])
        while there and random_.random() < 0.4:
            gone = random_.choice([*roots] if random_.random() < 0.3 else [*there])
            roots.remove(gone)
            del there[gone]
        if key % 25 == 24 or key < 20:
            check(roots, there)
    assert len(roots) == len(there)


def test_a_condition_without_normal_form_is_covered_by_true_and_its_own_text() -> None:
    roots = Roots()
    for key, text in enumerate([OTHER, OTHER, "snr > 5", TRUE]):
        roots.insert(key, compile_sql(text, "lsst"))
        assert [*roots] == ([0], [0], [0, 2], [3])[key]
    roots.remove(3)
    assert {*roots} == {0, 2}
    assert roots.root_of(1) == 0
    with pytest.raises(KeyError, match="2 already; remove it first"):
        roots.insert(2, NormalForm())
