"""From a condition to its normal form: for each term, the set of values with which it passes."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Any

from nightwire.filters.language.program import Node, Program
from nightwire.filters.language.subscriptions.terms import Term, constants, term_of
from nightwire.filters.language.subscriptions.value_sets import (
    ALL_NUMBERS,
    ALL_TEXTS,
    EVERYTHING,
    NOTHING,
    ValueSet,
    among,
    mirrored,
    number_cuts,
    starting,
    text_cuts,
)

MOST_CASES = 1_024
"""Most ways to write a text in small and capital letters that LIKE is taken apart into."""

SIGNS = frozenset({"<", "<=", ">", ">=", "==", "!="})
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
TRUE = ValueSet(number_cuts("!=", 0), text_cuts("!=", ""))
FALSE = ValueSet(number_cuts("==", 0), text_cuts("==", ""))
NULL = ValueSet(null=True)
VALUES = ValueSet(ALL_NUMBERS, ALL_TEXTS)


@dataclass(frozen=True)
class NormalForm:
    """A conjunction: an alert passes if each term's value lies in the term's set.

    Attributes:
        sets: By term; none of them is empty.  A term that has a fault lies in no set.
        empty: Whether nothing ever passes; there are no *sets* then.
    """

    sets: Mapping[Term, ValueSet] = field(default_factory=dict)
    empty: bool = False


@dataclass(frozen=True, slots=True)
class _Sides:
    """Where a condition on one term is true, false, unknown; elsewhere it has a fault.

    A term's own fault is the condition's, for all is asked from the left to the right; without a
    *term*, it is the same for all alerts.
    """

    term: Term | None
    true: ValueSet = NOTHING
    false: ValueSet = NOTHING
    unknown: ValueSet = NOTHING

    def turned(self) -> "_Sides":
        return replace(self, true=self.false, false=self.true)

    def each(self, function: Callable[[ValueSet], ValueSet]) -> "_Sides":
        return replace(
            self, true=function(self.true), false=function(self.false), unknown=function(self.unknown)
        )


def normal_form(program: Program) -> NormalForm | None:
    """Return the normal form of an SQL condition; None where it has none.

    It is exact: an alert passes it if and only if `evaluate` says that it passes *program*.
    Compiled Python has none: it takes nothing for a value like others.
    """
    if program.nodes[-1][0] != "sql.and":
        return None
    reader = _Reader(program.nodes)
    sets = reader.conjunction(len(program.nodes) - 1, wanted=True)
    return _form(sets) if reader.exact else None


def bound(condition: Program) -> NormalForm:
    """Return a normal form that everything lies in which passes an SQL condition.

    Of what AND joins, parts that have no normal form are left out.
    """
    return _form(_Reader(condition.nodes).conjunction(len(condition.nodes) - 1, wanted=True))


def _form(sets: Mapping[Term, ValueSet]) -> NormalForm:
    return NormalForm(sets) if all(sets.values()) else NormalForm(empty=True)


def reduced(condition: Program | NormalForm) -> Program | NormalForm:
    """Return the normal form of a condition, itself if it has none."""
    return condition if isinstance(condition, NormalForm) else normal_form(condition) or condition


class _Reader:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes, self.exact = nodes, True
        self._constants = constants(nodes)
        self._sides = list[_Sides | None]()
        for at, node in enumerate(nodes):  # from the leaves on: a chain of many ORs is deep
            self._sides.append(self._judged(at) if node[0] in CONDITIONS else None)

    def conjunction(self, at: int, *, wanted: bool) -> dict[Term, ValueSet]:
        """Return the sets of values without which node *at* is never true, or false, as *wanted*.

        With them it always is, if all of it could be read: then this is *exact*.
        """
        found: dict[Term, ValueSet] = {}
        waiting = {(at, wanted): None}
        done = set[tuple[int, bool]]()
        while waiting:
            at, wanted = place = waiting.popitem()[0]
            done.add(place)
            operation, *given = self._nodes[at]
            if operation == "sql.not":
                waiting[given[0], not wanted] = None
            elif operation == ("sql.and" if wanted else "sql.or"):
                waiting |= {(one, wanted): None for one in given if (one, wanted) not in done}
            else:
                self.exact &= self._narrow(found, at, wanted=wanted)
        return found

    def _narrow(self, found: dict[Term, ValueSet], at: int, *, wanted: bool) -> bool:
        """Narrow the sets *found* by a condition on one term; return whether it is one."""
        sides = self.sides(at)
        if sides is None:
            return False
        some = sides.true if wanted else sides.false
        if sides.term is not None:
            known = found.get(sides.term)
            found[sides.term] = some if known is None else known & some
        elif not some:
            found[NEVER] = NOTHING
        return True

    def sides(self, at: int) -> _Sides | None:
        """Return where node *at*, taken for a condition, is true and false, if of one term."""
        if self._nodes[at][0] in CONDITIONS:
            return self._sides[at]
        return self._of_values(at, _Sides(None, TRUE, FALSE, NULL))

    def _judged(self, at: int) -> _Sides | None:
        operation, *given = self._nodes[at]
        if operation == "sql.not":
            one = self.sides(given[0])
            return one and one.turned()
        if operation in ("sql.and", "sql.or"):
            both = [self.sides(one) for one in given]
            return _both(operation, both[0], both[1])
        return self._asked(operation.removeprefix("sql."), *given)

    def _asked(self, name: str, first: int, second: Any = None) -> _Sides | None:
        if name == "null":
            return self._of_values(first, _Sides(None, NULL, VALUES))
        if name == "like":
            texts = _like(second)
            return texts and self._of_values(first, texts)
        if name in SIGNS and first in self._constants:
            name, first, second = TURNED[name], second, first
        if second not in self._constants:
            return None
        constant = self._constants[second]
        return self._of_values(first, _among(constant) if name == "in" else _compared(name, constant))

    def _of_values(self, at: int, sides: _Sides) -> _Sides | None:
        """Return *sides*, which are of the values of node *at*, as sides of the term in it."""
        if at in self._constants:
            constant = self._constants[at]
            return sides.each(lambda one: EVERYTHING if constant in one else NOTHING)
        operation, *given = self._nodes[at]
        if operation in ("sql.neg", "sql.abs"):
            return self._of_values(given[0], sides.each(_negated if operation == "sql.neg" else _absolute))
        if operation == "sql.coalesce" and given[1] in self._constants:
            other = self._constants[given[1]]
            return self._of_values(given[0], sides.each(lambda one: replace(one, null=other in one)))
        if operation in CONDITIONS:
            inner = self.sides(at)
            return inner and _of_truth(inner, sides)
        term = term_of(self._nodes, at)
        # what only Python can judge
        return None if any(node[0] == "sql.round_to" for node in term.nodes) else replace(sides, term=term)


CONDITIONS = frozenset(f"sql.{name}" for name in (*SIGNS, "in", "null", "like", "and", "or", "not"))
NEVER = Term("NULL", (("const", None),))
"""Stands for a condition that nothing passes."""
ALWAYS = _Sides(None, true=EVERYTHING)


def _both(operation: str, one: _Sides | None, two: _Sides | None) -> _Sides | None:
    """Return the sides of AND or OR; the second is not asked where the first decides."""
    if operation == "sql.or":
        found = _both("sql.and", one and one.turned(), two and two.turned())
        return found and found.turned()
    if one is not None and one.term is None and not one.true and not one.unknown:
        return one
    if one is None or two is None:
        return None
    if ALWAYS in (one, two):
        return two if one == ALWAYS else one
    if one.term != two.term and one.term is not None and two.term is not None:
        return None
    return _met(one.term or two.term, one, two)


def _met(term: Term | None, one: _Sides, two: _Sides) -> _Sides:
    open_ = one.true | one.unknown
    true = one.true & two.true
    return _Sides(term, true, one.false | (open_ & two.false), (open_ & (two.true | two.unknown)) - true)


def _of_truth(inner: _Sides, sides: _Sides) -> _Sides:
    """Return *sides*, which are of the values True, False and NULL, by what makes those."""

    def made(values: ValueSet) -> ValueSet:
        true, false = (inner.true if True in values else NOTHING), inner.false if False in values else NOTHING
        return true | false | (inner.unknown if values.null else NOTHING)

    return replace(sides.each(made), term=inner.term)


def _negated(values: ValueSet) -> ValueSet:
    return ValueSet(mirrored(values.numbers), null=values.null)


def _absolute(values: ValueSet) -> ValueSet:
    """Return the numbers whose absolute value is one of *values*."""
    positive = ValueSet(values.numbers) & ValueSet(number_cuts(">=", 0))
    return positive | ValueSet(mirrored(positive.numbers), null=values.null)


def _compared(sign: str, constant: Any) -> _Sides:
    """Return where a value compares so with a *constant*; texts and numbers have no order."""
    if constant is None or constant != constant:  # NaN
        return _Sides(None, unknown=EVERYTHING)
    if isinstance(constant, str):
        true, kind = ValueSet(texts=text_cuts(sign, constant)), ValueSet(texts=ALL_TEXTS)
    else:
        true, kind = ValueSet(number_cuts(sign, constant)), ValueSet(ALL_NUMBERS)
    if sign == "!=":
        true |= VALUES - kind
    return _Sides(None, true, (VALUES if sign in ("==", "!=") else kind) - true, NULL)


def _among(constants: Any) -> _Sides:
    true = among(constants)
    return _Sides(None, true, VALUES - true, NULL)


def _like(pattern: str) -> _Sides | None:
    """Return which texts are like *pattern*; None unless it is a prefix, or a whole text."""
    prefix = pattern.removesuffix("%")
    if "%" in prefix or "_" in prefix:
        return None
    cases = [_cases(one) for one in prefix]
    if prod(map(len, cases)) > MOST_CASES:
        return None
    texts = ["".join(one) for one in product(*cases)]
    true = among(texts) if prefix == pattern else ValueSet(texts=starting(texts))
    return _Sides(None, true, ValueSet(texts=ALL_TEXTS) - true, NULL)


@cache
def _cased() -> str:
    """Return the characters that have small and capital forms: LIKE takes others for themselves."""
    every = map(chr, range(0x110000))
    return "".join(one for one in every if not one.lower() == one == one.upper())


@lru_cache(maxsize=1_000)
def _cases(character: str) -> Sequence[str]:
    """Return the characters that LIKE takes for *character*, as it takes small for capital ones."""
    return re.findall(re.escape(character), _cased(), re.IGNORECASE) or [character]
