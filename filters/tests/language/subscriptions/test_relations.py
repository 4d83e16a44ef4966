"""The relations of Eide et al., against their definitions over notifications, and SQLite.

Between two constants of constraints lies a value that notifications have, and one beyond the last:
so what is said of all notifications may be asked of these.
"""

import math
import operator
import random
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import pytest

from nightwire.filters.language import compile_sql
from nightwire.filters.language.subscriptions import (
    NormalForm,
    Term,
    ValueSet,
    covers,
    either,
    field_term,
    is_advertised,
    is_offered,
    matches,
    normal_form,
    overlaps,
)

VALUES: Mapping[str, Sequence[Any]] = {
    "magnitude": (None, math.nan, -math.inf, -1, -0.0, 1, 1.5, 3, 2**53, 2**53 + 1, 1e300, math.inf, "no"),
    "band": (None, "", "AB", "a", "ab", "abc", "z", "é", "ü", 7),
    "visit": (None, -1, 0, 5),
}
CONSTANTS = {
    "magnitude": ("0", "1.5", "9007199254740992", "9e999"),
    "band": ("''", "'ab'", "'é'"),
    "visit": ("0",),
}
SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
    "<>": operator.ne,
}  # fmt: skip
NOTIFICATIONS = [dict(zip(VALUES, some, strict=True)) for some in product(*VALUES.values())]


def has(value: object) -> bool:
    """Return whether a notification has an attribute of this value: SQL takes NaN for NULL."""
    return value is not None and value == value


@dataclass(frozen=True)
class Constraint:
    """An attribute, a question to its value in our SQL and in SQLite's, and in Python.

    A value of another type than the constant's is different from it, and neither more nor less.
    """

    name: str
    sql: str
    lite: str
    holds: Callable[[Any], bool]


def compared(name: str, sign: str, text: str) -> Constraint:
    constant, sql = number(text), f"{name} {sign} {text}"

    def holds(value: Any) -> bool:
        alike = isinstance(value, str) == isinstance(constant, str)
        return SIGNS[sign](value, constant) if alike or sign in ("=", "<>") else False

    kind = f"typeof({name}) {'=' if name == 'band' else '<>'} 'text'"
    return Constraint(name, sql, sql if sign in ("=", "<>") else f"({kind} AND {sql})", holds)


def constraints() -> list[Constraint]:
    found = [compared(name, sign, one) for name, some in CONSTANTS.items() for one in some for sign in SIGNS]
    others: Sequence[tuple[str, str, Callable[[Any], bool]]] = [
        *((name, f"{name} IS NOT NULL", lambda _: True) for name in VALUES),
        ("band", "band IN ('ab', 'z')", lambda value: value in ("ab", "z")),
        ("band", "band LIKE 'ab%'", lambda value: isinstance(value, str) and value.lower().startswith("ab")),
        (
            "magnitude",
            "ABS(magnitude) >= 1.5",
            lambda value: not isinstance(value, str) and abs(value) >= 1.5,
        ),
    ]
    return [*found, *(Constraint(name, sql, sql, holds) for name, sql, holds in others)]


def number(text: str) -> Any:
    return text[1:-1] if text[0] == "'" else float(text) if "e" in text or "." in text else int(text)


CONSTRAINTS = constraints()
Filter = Sequence[Constraint]


@cache
def attribute_matches(constraint: Constraint) -> int:
    """Return the notifications with an attribute that matches, a bit each."""
    found = [has(one[constraint.name]) and constraint.holds(one[constraint.name]) for one in NOTIFICATIONS]
    return sum(bit << at for at, bit in enumerate(found))


@cache
def absent(name: str) -> int:
    return sum((not has(one[name])) << at for at, one in enumerate(NOTIFICATIONS))


ALL = (1 << len(NOTIFICATIONS)) - 1


def subscribed(subscription: Filter) -> int:
    """Return which match: for each constraint there is an attribute that matches it."""
    found = ALL
    for one in subscription:
        found &= attribute_matches(one)
    return found


def advertised(advertisement: Filter) -> int:
    """Return which are advertised: for each attribute there is a constraint that it matches."""
    found = ALL
    for name in VALUES:
        allowed = absent(name)
        for one in advertisement:
            allowed |= attribute_matches(one) if one.name == name else 0
        found &= allowed
    return found


@cache
def form_of(condition: str) -> NormalForm:
    found = normal_form(compile_sql(condition))
    assert found is not None
    return found


def subscription_of(several: Filter, *, whole: bool) -> NormalForm:
    """Return the form of all at once if *whole*, else the constraints' own, together."""
    if whole:
        return form_of(" AND ".join(one.sql for one in several) or "TRUE")
    sets: dict[Term, ValueSet] = {}
    for constraint in several:
        for term, some in form_of(constraint.sql).sets.items():
            sets[term] = sets[term] & some if term in sets else some
    possible = all(sets.values()) and not any(form_of(one.sql).empty for one in several)
    return NormalForm(sets) if possible else NormalForm(empty=True)


def advertisement_of(several: Filter) -> NormalForm:
    return either([form_of(one.sql) for one in several])


def database() -> sqlite3.Connection:
    """Return SQLite's own answers to each constraint: columns of ``n``, a row each."""
    found = sqlite3.connect(":memory:")
    marks = ", ".join("?" * len(VALUES))
    answers = ", ".join(f"COALESCE({one.lite}, 0) AS c{at}" for at, one in enumerate(CONSTRAINTS))
    lacks = ", ".join(f"{name} IS NULL AS {name}" for name in VALUES)
    found.execute(f"CREATE TABLE given ({', '.join(VALUES)})")
    found.executemany(f"INSERT INTO given VALUES ({marks})", [tuple(one.values()) for one in NOTIFICATIONS])  # noqa: S608
    found.execute(f"CREATE TABLE n AS SELECT {answers}, {lacks} FROM given")  # noqa: S608
    return found


COLUMNS = {one.sql: f"c{at}" for at, one in enumerate(CONSTRAINTS)}


def in_sqlite(db: sqlite3.Connection, one: Filter, other: Filter, offer: Filter) -> tuple[bool, ...]:
    """Return whether *one* covers *other*, overlaps it, and is offered."""
    first, second = (" AND ".join(COLUMNS[part.sql] for part in some) or "1" for some in (one, other))
    allowed = [
        " OR ".join([name, *[COLUMNS[part.sql] for part in offer if part.name == name]]) for name in VALUES
    ]
    conditions = (
        f"{second} AND NOT ({first})",
        f"{first} AND {second}",
        f"{first} AND ({') AND ('.join(allowed)})",
    )
    questions = ", ".join(f"EXISTS (SELECT 1 FROM n WHERE {one})" for one in conditions)  # noqa: S608
    uncovered, both, wanted = db.execute(f"SELECT {questions}").fetchone()
    return not uncovered, bool(both), bool(wanted)


def some_filter(random_: random.Random, most: int) -> Filter:
    return random_.choices(CONSTRAINTS, k=random_.randrange(most))


def agreed(cases: int, seed: int) -> int:
    """Check that all agree on random filters; return how many of the answers were yes."""
    random_, db, yes = random.Random(seed), database(), 0
    for _ in range(cases):
        one, other, offer = some_filter(random_, 4), some_filter(random_, 5), some_filter(random_, 6)
        if random_.random() < 0.3:
            other = [*one, *other][:5]
        s, t = (subscription_of(some, whole=random_.random() < 0.1) for some in (one, other))
        a = advertisement_of(offer)
        first, second, third = subscribed(one), subscribed(other), advertised(offer)
        said = (covers(s, t), overlaps(s, t), is_offered(s, a))
        assert said == (not second & ~first, bool(first & second), bool(first & third)), [
            [p.sql for p in f] for f in (one, other, offer)
        ]
        assert said == in_sqlite(db, one, other, offer), [[p.sql for p in f] for f in (one, other, offer)]
        at = random_.randrange(len(NOTIFICATIONS))
        values = {field_term(name): value for name, value in NOTIFICATIONS[at].items()}
        assert matches(values, s) == bool(first >> at & 1), (one, values)
        assert is_advertised(values, a) == bool(third >> at & 1), (offer, values)
        yes += sum(said)
    return yes


@pytest.mark.slow
def test_ten_thousand_cases_agree_with_the_definitions_and_sqlite() -> None:
    assert 6_000 < agreed(10_000, 1) < 24_000


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_a_million_cases_agree_with_the_definitions_and_sqlite(capsys: pytest.CaptureFixture[str]) -> None:
    yes = sum(agreed(10_000, seed) for seed in range(100, 200))
    with capsys.disabled():
        sys.stdout.write(f"\n1,000,000 cases, no difference; {yes / 3e6:.0%} of the answers were yes\n")
