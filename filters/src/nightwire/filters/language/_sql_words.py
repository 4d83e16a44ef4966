"""The words of an SQL condition, and where each stands."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from nightwire.filters.language._source import FilterError

WORDS = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<name>[A-Za-z_]\w*|"[^"]+"|`[^`]+`)
    | (?P<sign><=|>=|<>|!=|==|\|\||[<>=+\-*/%(),.;])
    )""",
    re.VERBOSE,
)

KEYWORDS = frozenset(
    {
        *("AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "LIKE", "TRUE", "FALSE", "WHERE", "ESCAPE"),
        *("CASE", "WHEN", "THEN", "ELSE", "END"),
    }
)

MAX_CONDITION = 20_000
"""Longest condition accepted. [character]"""


class Word(NamedTuple):
    """One word: its kind (``number``, ``text``, ``name``, ``sign``, ``keyword``, ``end``), and where."""

    kind: str
    text: str
    at: int


def error_at(condition: str, at: int, said: str) -> FilterError:
    """Return the error that *said* of what stands at position *at*."""
    line = condition.count("\n", 0, at) + 1
    column = at - (condition.rfind("\n", 0, at) + 1) + 1
    return FilterError(f"line {line}, column {column}: {said}")


def words(condition: str) -> Iterator[Word]:
    """Yield the words of *condition*, comments left out, and one that ends it.

    Raises:
        FilterError: Something is no word; says where.
    """
    if len(condition) > MAX_CONDITION:
        raise FilterError(f"the condition has {len(condition):,} characters, limit is {MAX_CONDITION:,}")
    at = 0
    end = len(condition.rstrip())
    while at < end:
        found = WORDS.match(condition, at)
        if found is None or found.lastgroup is None:
            at += len(condition[at:]) - len(condition[at:].lstrip())
            raise error_at(condition, at, f"{condition[at : at + 20]!r} is not understood")
        yield _word(found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup))
        at = found.end()
    yield Word("end", "the end", end)


def _word(kind: str, text: str, at: int) -> Word:
    if kind == "text":
        return Word(kind, text[1:-1].replace("''", "'"), at)
    if kind == "name" and text[0] in '"`':
        return Word(kind, text[1:-1], at)
    if kind == "name" and text.upper() in KEYWORDS:
        return Word("keyword", text.upper(), at)
    return Word(kind, text, at)
