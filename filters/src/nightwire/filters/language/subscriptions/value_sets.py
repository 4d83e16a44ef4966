"""Sets of values, of numbers, texts and nothing: unions of intervals, closed under all of logic.

A set along one axis is a sorted tuple of *cuts*, at each of which one goes in or out, in first; an
odd one goes on for ever.  A number's cut is ``(number, after)``: just before it, or just after.  A
text's cut is a text, just before it: what follows ``"a"`` at once is ``"a\\0"``.  Numbers are
compared as Python does it, exactly, whole ones with floats; True is 1, and -0.0 is 0.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Cuts = tuple[Any, ...]

LOWEST_NUMBER = (-math.inf, False)
LOWEST_TEXT = ""
ALL_NUMBERS: Cuts = (LOWEST_NUMBER,)
ALL_TEXTS: Cuts = (LOWEST_TEXT,)


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of the values that a term may have.

    Attributes:
        numbers: Cuts along the numbers, infinite ones among them.
        texts: Cuts along the texts, in the order of their characters' code points.
        null: Whether NULL belongs to it, and NaN, which SQL takes for NULL.
    """

    numbers: Cuts = ()
    texts: Cuts = ()
    null: bool = False

    def __contains__(self, value: object) -> bool:
        if value is None or value != value:  # NaN
            return self.null
        if isinstance(value, str):
            return bisect_right(self.texts, value) % 2 == 1
        return bisect_right(self.numbers, (value, False)) % 2 == 1

    def __bool__(self) -> bool:
        return bool(self.numbers or self.texts or self.null)

    def __and__(self, other: "ValueSet") -> "ValueSet":
        return self._with(other, lambda one, two: one and two)

    def __or__(self, other: "ValueSet") -> "ValueSet":
        return self._with(other, lambda one, two: one or two)

    def __sub__(self, other: "ValueSet") -> "ValueSet":
        return self._with(other, lambda one, two: one and not two)

    def __le__(self, other: "ValueSet") -> bool:
        return (
            (other.null or not self.null)
            and _within(self.numbers, other.numbers)
            and _within(self.texts, other.texts)
        )

    def _with(self, other: "ValueSet", keep: Callable[[bool, bool], bool]) -> "ValueSet":
        return ValueSet(
            _merged(self.numbers, other.numbers, keep),
            _merged(self.texts, other.texts, keep),
            keep(self.null, other.null),
        )


NOTHING = ValueSet()
EVERYTHING = ValueSet(ALL_NUMBERS, ALL_TEXTS, null=True)


def _merged(one: Cuts, two: Cuts, keep: Callable[[bool, bool], bool]) -> Cuts:
    """Return the cuts where *keep*, of lying in *one* and in *two*, turns; never for neither."""
    ones, twos, found = {*one}, {*two}, list[Any]()
    in_one = in_two = False
    for cut in sorted(ones | twos):
        in_one ^= cut in ones
        in_two ^= cut in twos
        if keep(in_one, in_two) != len(found) % 2:
            found.append(cut)
    return tuple(found)


def _within(one: Cuts, two: Cuts) -> bool:
    """Return whether all of *one* lies in *two*: no way leads out of *two* inside of *one*."""
    for at in range(0, len(one), 2):
        place = bisect_right(two, one[at])
        if place % 2 == 0 or (place < len(two) and (at + 1 == len(one) or two[place] < one[at + 1])):
            return False
    return True


def number_cuts(sign: str, limit: float) -> Cuts:
    """Return the numbers that are ``<``, ``<=``, ``>``, ``>=``, ``==`` or ``!=`` than *limit*."""
    before, after = (limit, False), (limit, True)
    return _compared(sign, LOWEST_NUMBER, before, None if limit == math.inf else after)


def text_cuts(sign: str, limit: str) -> Cuts:
    """Return the texts that are ``<``, ``<=``, ``>``, ``>=``, ``==`` or ``!=`` than *limit*."""
    return _compared(sign, LOWEST_TEXT, limit, limit + "\0")


def _compared(sign: str, lowest: Any, before: Any, after: Any | None) -> Cuts:
    found: Sequence[Any] = {
        "<": [lowest, before], "<=": [lowest, after], ">": [after], ">=": [before],
        "==": [before, after], "!=": [lowest, before, after],
    }[sign]  # fmt: skip
    found = [cut for cut in found if cut is not None]
    return () if sign == ">" and after is None else tuple(found[2:] if found[:2] == [lowest] * 2 else found)


def among(values: Iterable[Any]) -> ValueSet:
    """Return the set of these numbers and texts."""
    values = list(values)
    texts = sorted({one for one in values if isinstance(one, str)})
    numbers = sorted({one for one in values if not isinstance(one, str)})
    cuts = [cut for one in numbers for cut in number_cuts("==", one)]
    return ValueSet(tuple(cuts), _joined([text_cuts("==", one) for one in texts]))


def starting(prefixes: Iterable[str]) -> Cuts:
    """Return the texts that start with one of *prefixes*, none of which starts with another."""
    return _joined([_prefixed(one) for one in sorted(prefixes)])


def _prefixed(prefix: str) -> Cuts:
    kept = prefix.rstrip("\U0010ffff")
    return (prefix, kept[:-1] + chr(ord(kept[-1]) + 1)) if kept else (prefix,)


def _joined(parts: Iterable[Cuts]) -> Cuts:
    """Return the cuts of sorted *parts* that lie apart; where two touch, one goes on."""
    found: list[Any] = []
    for part in parts:
        touching = bool(found) and found[-1] == part[0]
        found[len(found) - touching :] = part[touching:]
    return tuple(found)


def mirrored(cuts: Cuts) -> Cuts:
    """Return the numbers whose negative lies in *cuts*."""
    closed = [*cuts, (math.inf, True)] if len(cuts) % 2 else cuts
    turned = [(-number, not after) for number, after in reversed(closed)]
    return tuple(turned[:-1] if turned and turned[-1] == (math.inf, True) else turned)
