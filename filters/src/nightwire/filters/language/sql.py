"""From an SQL condition (the text behind WHERE) to a program: tokens, parser, functions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nightwire.filters.language.builder import Builder
from nightwire.filters.language.operations import CANONICAL
from nightwire.filters.language.program import MAX_CHOICES, NotCompilable, Program, is_constant
from nightwire.filters.language.source import FilterError
from nightwire.schemas import survey as survey_called
from nightwire.schemas.survey_model import MatchName, Measurement

if TYPE_CHECKING:
    from nightwire.schemas import Survey

TOKEN = re.compile(
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

ALERT = "alert"
"""Before a name: a field of the alert itself, such as a transform adds."""

MAX_CONDITION = 2_500_000
"""Longest condition accepted. [character]"""


class Token(NamedTuple):
    """A token: kind (``number``, ``text``, ``name``, ``sign``, ``keyword``, ``end``) and place."""

    kind: str
    text: str
    at: int


def error_at(condition: str, at: int, message: str) -> FilterError:
    """Return the error *message* with the line and column of position *at*."""
    line = condition.count("\n", 0, at) + 1
    column = at - (condition.rfind("\n", 0, at) + 1) + 1
    return FilterError(f"line {line}, column {column}: {message}")


def tokens(condition: str) -> Iterator[Token]:
    """Yield the tokens of *condition*, and one that ends it.

    Raises:
        FilterError: Something is no token; says where.
    """
    if len(condition) > MAX_CONDITION:
        raise FilterError(f"the condition has {len(condition):,} characters, limit is {MAX_CONDITION:,}")
    at = 0
    end = len(condition.rstrip())
    while at < end:
        found = TOKEN.match(condition, at)
        if found is None or found.lastgroup is None:
            at += len(condition[at:]) - len(condition[at:].lstrip())
            raise error_at(condition, at, f"{condition[at : at + 20]!r} is not understood")
        yield _token(found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup))
        at = found.end()
    yield Token("end", "the end", end)


def _token(kind: str, text: str, at: int) -> Token:
    if kind == "text":
        return Token(kind, text[1:-1].replace("''", "'"), at)
    if kind == "name" and text[0] in '"`':
        return Token(kind, text[1:-1], at)
    if kind == "name" and text.upper() in KEYWORDS:
        return Token("keyword", text.upper(), at)
    return Token(kind, text, at)


MAX_DIGITS = 19
"""Digits of the largest whole number of 64 bits."""

MAX_DEPTH = 60
"""How deep conditions may be nested."""


def compile_sql(condition: str, survey: "Survey | str | None" = None) -> Program:
    """Return an SQL condition in the closed language.

    Args:
        condition: What stands behind WHERE; the word itself may stand before it.
        survey: Whose alerts: a bare name that is not canonical is a field of its source
            (``psfFlux``). None: of any survey, and there are no bare names.

    Raises:
        FilterError: It is no condition; says where and why.
    """
    return _Parser(condition, _source(survey)).program()


def _source(survey: "Survey | str | None") -> Measurement | None:
    if survey is None or survey == "*":
        return None
    found = survey_called(survey) if isinstance(survey, str) else survey
    return found.description.source


class _Parser:
    """Recursive descent; each method takes its tokens and returns their node."""

    def __init__(self, condition: str, source: Measurement | None) -> None:
        self._condition = condition
        self._source = source
        self._tokens = list(tokens(condition))
        self._at = 0
        self._depth = 0
        self._build = Builder()

    def program(self) -> Program:
        self._takes("WHERE")
        verdict = self._or()
        self._takes(";")
        if self._token.kind != "end":
            raise self._error(f"{self._token.text!r} does not belong here")
        build = self._build
        try:
            whole = build.of("sql.and", verdict, build.constant(True))
            return build.program(whole, self._condition.splitlines())
        except NotCompilable as error:
            raise FilterError(*error.reasons) from error

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._token
        self._at += token.kind != "end"
        self._build.line = self._condition.count("\n", 0, token.at) + 1
        return token

    def _takes(self, *wanted: str) -> str | None:
        """Return the next token if it is a sign or keyword of *wanted*, and go on behind it."""
        if self._token.kind in ("sign", "keyword") and self._token.text in wanted:
            return self._next().text
        return None

    def _expect(self, wanted: str) -> None:
        if self._takes(wanted) is None:
            raise self._error(f"{wanted} is expected, not {self._token.text!r}")

    def _error(self, message: str) -> FilterError:
        return error_at(self._condition, self._token.at, message)

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
            elif self._token.text in ("NOT", "BETWEEN", "IN", "LIKE") and self._token.kind == "keyword":
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
        if (among := self._constants()) is not None:
            return self._of("in", left, self._build.constant(among))
        found = self._of("==", left, self._sum())
        while self._takes(","):
            found = self._of("or", found, self._of("==", left, self._sum()))
        self._expect(")")
        return found

    def _constants(self) -> frozenset[Any] | None:
        """Return what follows, up to the bracket, if it is constants alone; None if it is not."""
        start, values = self._at, list[Any]()
        while self._token.kind in ("number", "text") and len(values) < MAX_CHOICES:
            token = self._token
            values.append(self._number(token) if token.kind == "number" else token.text)
            self._at += 2
            sign = self._tokens[self._at - 1].text
            if sign == ")" and all(map(is_constant, values)):
                return frozenset(values)
            if sign != ",":
                break
        self._at = start
        return None

    def _like(self, left: int) -> int:
        if self._token.kind != "text":
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
        token = self._next()
        if token.kind == "number":
            return self._build.constant(self._number(token))
        if token.kind == "text":
            return self._build.constant(token.text)
        if token.kind == "name":
            return self._function(token) if self._takes("(") else self._name(token)
        if token.kind == "keyword" and token.text in ("NULL", "TRUE", "FALSE"):
            return self._build.constant({"NULL": None, "TRUE": True, "FALSE": False}[token.text])
        if token.kind == "keyword" and token.text == "CASE":
            return self._case()
        if token.kind == "sign" and token.text == "(":
            found = self._or()
            self._expect(")")
            return found
        raise error_at(self._condition, token.at, f"a value is expected, not {token.text!r}")

    def _number(self, token: Token) -> int | float:
        if token.text.isdigit():
            if len(token.text.lstrip("0")) > MAX_DIGITS or int(token.text) >> 63:
                raise error_at(self._condition, token.at, "whole numbers have 64 bits at most")
            return int(token.text)
        return float(token.text)

    def _name(self, token: Token) -> int:
        parts = [token.text]
        while self._takes("."):
            if self._token.kind not in ("name", "keyword"):
                raise self._error("the name of a field is expected")
            parts.append(self._next().text)
        if parts[0] == ALERT and len(parts) > 1:
            return self._build.leaf("sql.field", ".".join(parts[1:]))
        path = ".".join(parts)
        if "." not in path and path not in CANONICAL:
            if self._source is None:
                there = f"{', '.join(sorted(CANONICAL))}, and the survey's own fields by their dotted names"
                raise error_at(self._condition, token.at, f"there is no {path}; there are {there}")
            path = self._source.at(path)
        return self._build.leaf("sql.field", path)

    def _function(self, token: Token) -> int:
        name = token.text.upper()
        given = [] if self._token.text == ")" else [self._or()]
        while self._takes(","):
            given.append(self._or())
        self._expect(")")
        found = function(self._build, name, given)
        if found is None:
            raise error_at(
                self._condition, token.at, f"there is no function {name} of {len(given)} arguments"
            )
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
            found = case_node(self._build, condition, value, found)
        return found

    def _of(self, operation: str, *operands: int) -> int:
        return sql_node(self._build, operation, *operands)


COMPARISONS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "==", "==": "==", "<>": "!=", "!=": "!="}

ONE_ARGUMENT: Mapping[str, str] = {
    "ABS": "abs", "SQRT": "math.sqrt", "LN": "math.log", "LOG": "math.log", "LOG10": "math.log10",
    "LOG2": "math.log2", "EXP": "math.exp", "SIN": "math.sin", "COS": "math.cos", "TAN": "math.tan",
    "ASIN": "math.asin", "ACOS": "math.acos", "ATAN": "math.atan", "RADIANS": "math.radians",
    "DEGREES": "math.degrees", "FLOOR": "math.floor", "CEIL": "math.ceil", "CEILING": "math.ceil",
    "ROUND": "round", "LENGTH": "size", "LOWER": "lower", "UPPER": "upper",
}  # fmt: skip
TWO_ARGUMENTS: Mapping[str, str] = {
    "POWER": "math.pow/2",
    "POW": "math.pow/2",
    "ATAN2": "math.atan2/2",
    "MOD": "%",
}
ANY_ARGUMENTS: Mapping[str, str] = {"LEAST": "smallest", "GREATEST": "largest"}

PI = 3.141592653589793


def sql_node(build: Builder, operation: str, *operands: int) -> int:
    """Return the node of an *operation* as SQL has it: NULL of NULL."""
    return build.of(f"sql.{operation}", *operands)


def case_node(build: Builder, condition: int, value: int, other: int) -> int:
    """Return *value* where *condition* is true, else *other*: unknown is not true."""
    return build.of("if", sql_node(build, "and", condition, build.constant(True)), value, other)


def function(build: Builder, name: str, given: Sequence[int]) -> int | None:
    """Return the node of a call of SQL's function *name*, in capitals; None if there is none."""
    if name == "PI" and not given:
        return build.constant(PI)
    for table, fits in (
        (ONE_ARGUMENT, len(given) == 1),
        (TWO_ARGUMENTS, len(given) == 2),
        (ANY_ARGUMENTS, len(given) > 1),
    ):
        if name in table and fits:
            return sql_node(build, table[name], *given)
    special = SPECIAL.get((name, len(given))) or SPECIAL.get((name, 0))
    return special(build, given) if special and given else None


def _coalesce(build: Builder, given: Sequence[int]) -> int:
    """Return the first of *given* that is not NULL."""
    *others, found = given
    while others:
        found = sql_node(build, "coalesce", others.pop(), found)
    return found


def _none_if(build: Builder, given: Sequence[int]) -> int:
    """Return NULL where both are equal, else the first."""
    return case_node(build, sql_node(build, "==", *given), build.constant(None), given[0])


def _match(build: Builder, given: Sequence[int]) -> int:
    """Return a column of the nearest object of a catalogue; without a name, how far it is."""
    values = [build.nodes[at][1] for at in given if build.nodes[at][0] == "const"]
    catalogue, radius, column = [*values, "separation"][:3] if len(values) == len(given) else (None, 0, "")
    if type(catalogue) is not str or type(radius) not in (int, float) or type(column) is not str:
        raise build.refuse("MATCH takes constants: MATCH('gaia', 2), MATCH('gaia', 2, 'a column')")
    try:
        return build.leaf("sql.field", f"{MatchName.of(catalogue, radius)}.{column}")
    except ValueError as error:
        raise build.refuse(str(error)) from error


def _in_moc(build: Builder, given: Sequence[int]) -> int:
    """Return whether an alert lies within a map of the sky."""
    node = build.nodes[given[0]]
    if node[0] != "const" or type(node[1]) is not str:
        raise build.refuse("IN_MOC takes the name of a map: IN_MOC('footprint')")
    try:
        return build.leaf("sql.field", str(MatchName.of_map(node[1])))
    except ValueError as error:
        raise build.refuse(str(error)) from error


SPECIAL: Mapping[tuple[str, int], Callable[[Builder, Sequence[int]], int]] = {
    ("COALESCE", 0): _coalesce,
    ("IFNULL", 2): _coalesce,
    ("NULLIF", 2): _none_if,
    ("ROUND", 2): lambda build, given: sql_node(build, "round_to", *given),
    ("IF", 3): lambda build, given: case_node(build, *given),
    ("MATCH", 2): _match,
    ("MATCH", 3): _match,
    ("IN_MOC", 1): _in_moc,
}
"""Functions by name and number of arguments; 0 for any number."""
