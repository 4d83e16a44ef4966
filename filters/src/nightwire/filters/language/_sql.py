"""From an SQL condition (what stands behind WHERE) to a program of the closed language."""

from typing import TYPE_CHECKING

from nightwire.filters.language._builder import Builder
from nightwire.filters.language._program import NotCompilable, Program
from nightwire.filters.language._source import FilterError
from nightwire.filters.language._sql_meaning import COMPARISONS, chosen, function, said
from nightwire.filters.language._sql_words import Word, error_at, words
from nightwire.filters.language._statics import CANONICAL
from nightwire.schemas import survey as survey_called

if TYPE_CHECKING:
    from nightwire.schemas import Survey

MAX_DEPTH = 60
"""How deep conditions may be nested."""


def compile_sql(condition: str, survey: "Survey | str | None" = None) -> Program:
    """Return an SQL condition in the closed language.

    Args:
        condition: What stands behind WHERE; the word itself may stand before it.
        survey: Whose alerts: a bare name that is not canonical is a field of its source (``psfFlux``).
            None: of any survey, and there are no bare names.

    Raises:
        FilterError: It is no condition; says where and why.
    """
    return _Parser(condition, _source_path(survey)).program()


def _source_path(survey: "Survey | str | None") -> str | None:
    if survey is None or survey == "*":
        return None
    found = survey_called(survey) if isinstance(survey, str) else survey
    return found.description.source.path


class _Parser:
    """Recursive descent; each method takes its words and returns the node of what they mean."""

    def __init__(self, condition: str, source: str | None) -> None:
        self._condition = condition
        self._source = source
        self._words = list(words(condition))
        self._at = 0
        self._depth = 0
        self._build = Builder()

    def program(self) -> Program:
        self._takes("WHERE")
        verdict = self._or()
        self._takes(";")
        if self._word.kind != "end":
            raise self._error(f"{self._word.text!r} does not belong here")
        build = self._build
        try:
            whole = build.of("sql.and", verdict, build.constant(True))
            return build.program(whole, self._condition.splitlines())
        except NotCompilable as error:
            raise FilterError(*error.reasons) from error

    @property
    def _word(self) -> Word:
        return self._words[self._at]

    def _next(self) -> Word:
        word = self._word
        self._at += word.kind != "end"
        self._build.line = self._condition.count("\n", 0, word.at) + 1
        return word

    def _takes(self, *wanted: str) -> str | None:
        """Return the next word if it is one of the signs or keywords *wanted*, and go on behind it."""
        if self._word.kind in ("sign", "keyword") and self._word.text in wanted:
            return self._next().text
        return None

    def _expect(self, wanted: str) -> None:
        if self._takes(wanted) is None:
            raise self._error(f"{wanted} is expected, not {self._word.text!r}")

    def _error(self, said: str) -> FilterError:
        return error_at(self._condition, self._word.at, said)

    def _or(self) -> int:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH}")
        left = self._and()
        while self._takes("OR"):
            left = self._of("or", left, self._and())
        self._depth -= 1
        return left

    def _and(self) -> int:
        left = self._not()
        while self._takes("AND"):
            left = self._of("and", left, self._not())
        return left

    def _not(self) -> int:
        turned = False
        while self._takes("NOT"):
            turned = not turned
        found = self._predicate()
        return self._of("not", found) if turned else found

    def _predicate(self) -> int:
        left = self._sum()
        while True:
            if sign := self._takes(*COMPARISONS):
                left = self._of(COMPARISONS[sign], left, self._sum())
            elif self._takes("IS"):
                left = self._is(left)
            elif self._word.text in ("NOT", "BETWEEN", "IN", "LIKE") and self._word.kind == "keyword":
                turned = self._takes("NOT") is not None
                found = self._ranged(left)
                left = self._of("not", found) if turned else found
            else:
                return left

    def _is(self, left: int) -> int:
        turned = self._takes("NOT") is not None
        self._expect("NULL")
        null = self._of("null", left)
        return self._of("not", null) if turned else null

    def _ranged(self, left: int) -> int:
        if self._takes("BETWEEN"):
            low = self._of(">=", left, self._sum())
            self._expect("AND")
            return self._of("and", low, self._of("<=", left, self._sum()))
        if self._takes("LIKE"):
            return self._like(left)
        self._expect("IN")
        self._expect("(")
        found = self._of("==", left, self._sum())
        while self._takes(","):
            found = self._of("or", found, self._of("==", left, self._sum()))
        self._expect(")")
        return found

    def _like(self, left: int) -> int:
        if self._word.kind != "text":
            raise self._error("LIKE takes a pattern in quotes: 'ZTF%'")
        return self._build.text("sql.like", left, self._next().text)

    def _sum(self) -> int:
        left = self._product()
        while sign := self._takes("+", "-"):
            left = self._of(sign, left, self._product())
        return left

    def _product(self) -> int:
        left = self._signed()
        while sign := self._takes("*", "/", "%"):
            left = self._of(sign, left, self._signed())
        return left

    def _signed(self) -> int:
        turned = False
        while sign := self._takes("-", "+"):
            turned ^= sign == "-"
        found = self._primary()
        return self._of("neg", found) if turned else found

    def _primary(self) -> int:
        word = self._next()
        if word.kind == "number":
            return self._build.constant(self._number(word))
        if word.kind == "text":
            return self._build.constant(word.text)
        if word.kind == "name":
            return self._function(word) if self._takes("(") else self._name(word)
        if word.kind == "keyword" and word.text in ("NULL", "TRUE", "FALSE"):
            return self._build.constant({"NULL": None, "TRUE": True, "FALSE": False}[word.text])
        if word.kind == "keyword" and word.text == "CASE":
            return self._case()
        if word.kind == "sign" and word.text == "(":
            found = self._or()
            self._expect(")")
            return found
        raise error_at(self._condition, word.at, f"a value is expected, not {word.text!r}")

    def _number(self, word: Word) -> int | float:
        if word.text.isdigit():
            if int(word.text) >> 63:
                raise error_at(self._condition, word.at, "whole numbers have 64 bits at most")
            return int(word.text)
        return float(word.text)

    def _name(self, word: Word) -> int:
        parts = [word.text]
        while self._takes("."):
            if self._word.kind not in ("name", "keyword"):
                raise self._error("the name of a field is expected")
            parts.append(self._next().text)
        path = ".".join(parts)
        if "." not in path and path not in CANONICAL:
            if self._source is None:
                there = f"{', '.join(sorted(CANONICAL))}, and the survey's own fields by their dotted names"
                raise error_at(self._condition, word.at, f"there is no {path}; there are {there}")
            path = f"{self._source}.{path}"
        return self._build.leaf("sql.field", path)

    def _function(self, word: Word) -> int:
        name = word.text.upper()
        given = [] if self._word.text == ")" else [self._or()]
        while self._takes(","):
            given.append(self._or())
        self._expect(")")
        found = function(self._build, name, given)
        if found is None:
            raise error_at(self._condition, word.at, f"there is no function {name} of {len(given)} arguments")
        return found

    def _case(self) -> int:
        branches = []
        while self._takes("WHEN"):
            condition = self._or()
            self._expect("THEN")
            branches.append((condition, self._or()))
        found = self._or() if self._takes("ELSE") else self._build.constant(None)
        self._expect("END")
        if not branches:
            raise self._error("CASE takes at least one WHEN … THEN …")
        for condition, value in reversed(branches):
            found = chosen(self._build, condition, value, found)
        return found

    def _of(self, operation: str, *operands: int) -> int:
        return said(self._build, operation, *operands)
