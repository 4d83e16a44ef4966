"""Read XPath 1.0 expressions.

libxml2 evaluates expressions; this reads them only to see what they may cost.  The grammar is that
of the recommendation (W3C, 16 November 1999), with its rules that tell ``*`` and ``and`` as
operators from names. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nightwire.gateway.xpath.expression import Call, Expression, Literal, Operation, Path, Step

_DOWN = ("self", "attribute", "child", "descendant", "descendant-or-self")
_UP = ("parent", "ancestor", "ancestor-or-self")
_BESIDE = ("following", "following-sibling", "preceding", "preceding-sibling")
AXES = frozenset((*_DOWN, *_UP, *_BESIDE))
"""All axes but ``namespace``, which nobody needs for an event."""

_OF_NUMBERS = ("number", "floor", "ceiling", "round", "sum", "count", "last", "position")
_OF_TRUTH = ("boolean", "not", "true", "false", "lang")
_OF_STRINGS = ("string", "concat", "starts-with", "contains", "substring", "substring-before")
_MORE_OF_STRINGS = ("substring-after", "string-length", "normalize-space", "translate")
_OF_NAMES = ("name", "local-name", "namespace-uri")
FUNCTIONS = frozenset((*_OF_NUMBERS, *_OF_TRUTH, *_OF_STRINGS, *_MORE_OF_STRINGS, *_OF_NAMES))
"""The functions of XPath 1.0 but ``id``, which needs a DTD."""
MAX_NESTING = 40
"""Deepest nesting of brackets and operators."""

_NAME = r"[^\W\d][\w.-]*"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<literal>'[^']*'|"[^"]*")
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<name>{_NAME}:\*|{_NAME}(?::(?!:){_NAME})?)
  | (?P<sign>//|::|\.\.|!=|<=|>=|[()\[\].@,/|+\-=<>*$])
    )""",
    re.VERBOSE,
)
_SPELLED = ("and", "or", "div", "mod")
_LEVELS = (("or",), ("and",), ("=", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "div", "mod"))
_NODE_TYPES = ("comment", "text", "processing-instruction", "node")


class XPathShapeError(Exception):
    """The text is no expression of the kind that is taken; the message says what is wrong."""


def read_xpath(text: str) -> Expression:
    """Return the shape of the expression *text*.

    Raises:
        XPathShapeError: It is none, or uses what is not taken: variables, unknown functions and
            axes.
    """
    reader = _Reader(_tokens(text))
    found = reader.expression()
    if reader.next:
        raise XPathShapeError(f"{reader.next!r} is not expected")
    return found


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise XPathShapeError(f"{text[at : at + 20]!r} is not understood")
        kind = str(match.lastgroup)
        found.append(_Token(_as_operator(found, match[kind]) or kind, match[kind]))
        at = match.end()
    return found


def _as_operator(before: Sequence[_Token], text: str) -> str | None:
    """Say whether ``*`` or a name stands where only an operator may (section 3.7)."""
    if text != "*" and text not in _SPELLED:
        return None
    if not before or before[-1].kind == "operator":
        return None
    last = before[-1]
    opening = last.kind == "sign" and last.text not in (")", "]", ".", "..", "*")
    return None if opening else "operator"


class _Reader:
    """Read tokens by recursive descent."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    @property
    def next(self) -> str:
        """The text of the next token; empty at the end."""
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def expression(self, level: int = 0) -> Expression:
        """Read what binds at least as tightly as the operators of *level*."""
        if level == 0:
            self._depth += 1
            if self._depth > MAX_NESTING:
                raise XPathShapeError(f"nested more than {MAX_NESTING} deep")
        if level == len(_LEVELS):
            return self._unary()
        operands = [self.expression(level + 1)]
        operator = ""
        while self._is_operator(_LEVELS[level]):
            operator = self._take()
            operands.append(self.expression(level + 1))
        self._depth -= level == 0
        return operands[0] if len(operands) == 1 else Operation(operator, tuple(operands))

    def _unary(self) -> Expression:
        signs = 0
        while self.next == "-":
            self._take()
            signs += 1
        parts = [self._path()]
        while self.next == "|":
            self._take()
            parts.append(self._path())
        found = parts[0] if len(parts) == 1 else Operation("|", tuple(parts))
        return Operation("-", (found,)) if signs else found

    def _path(self) -> Expression:
        if self._starts_filter():
            start, predicates = self._primary(), self._predicates()
            steps = self._steps() if self.next in ("/", "//") else ()
            return Path(steps, False, start, predicates)
        absolute = self.next in ("/", "//")
        if self.next == "/" and not self._starts_step(1):
            self._take()
            return Path((), absolute=True)
        return Path(self._steps(), absolute)

    def _steps(self) -> tuple[Step, ...]:
        found: list[Step] = []
        while True:
            if self.next == "//":
                found.append(Step("descendant-or-self", shorthand=True))
            if self.next in ("/", "//"):
                self._take()
            found.append(self._step())
            if self.next not in ("/", "//"):
                return tuple(found)

    def _step(self) -> Step:
        if self.next in (".", ".."):
            return Step("self" if self._take() == "." else "parent")
        axis = "child"
        if self.next == "@":
            self._take()
            axis = "attribute"
        elif self._peek(1) == "::":
            axis = self._take()
            self._take()
        if axis not in AXES:
            raise XPathShapeError(f"the axis {axis!r} is not taken")
        return Step(axis, self._node_test(), self._predicates())

    def _node_test(self) -> str:
        token = self._token(0)
        if token is None or not (token.kind == "name" or token.text == "*"):
            raise XPathShapeError(f"a step is expected instead of {self.next!r}")
        self._take()
        if token.text in _NODE_TYPES and self.next == "(":
            self._take()
            while self.next and self.next != ")":
                self._take()
            self._expect(")")
            return f"{token.text}("
        return token.text

    def _predicates(self) -> tuple[Expression, ...]:
        found = []
        while self.next == "[":
            self._take()
            found.append(self.expression())
            self._expect("]")
        return tuple(found)

    def _primary(self) -> Expression:
        token = self._token(0)
        text = self._take()
        if token is None or text == "$":
            raise XPathShapeError("variables are not taken")
        if text == "(":
            found = self.expression()
            self._expect(")")
            return found
        if token.kind in ("literal", "number"):
            return Literal(len(text.encode()))
        return Call(text, self._arguments(text))

    def _arguments(self, function: str) -> tuple[Expression, ...]:
        if function not in FUNCTIONS:
            raise XPathShapeError(f"the function {function!r} is not taken")
        self._expect("(")
        found = []
        while self.next != ")":
            found.append(self.expression())
            if self.next != ")":
                self._expect(",")
        self._expect(")")
        return tuple(found)

    def _starts_filter(self) -> bool:
        token = self._token(0)
        if token is None:
            raise XPathShapeError("the expression ends too early")
        if token.kind in ("literal", "number") or token.text in ("(", "$"):
            return True
        return token.kind == "name" and self._peek(1) == "(" and token.text not in _NODE_TYPES

    def _starts_step(self, ahead: int) -> bool:
        token = self._token(ahead)
        return token is not None and (token.kind == "name" or token.text in (".", "..", "@", "*"))

    def _is_operator(self, operators: Sequence[str]) -> bool:
        token = self._token(0)
        if token is None or token.text not in operators:
            return False
        return token.kind == "operator" or token.text not in ("*", *_SPELLED)

    def _token(self, ahead: int) -> _Token | None:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def _peek(self, ahead: int) -> str:
        token = self._token(ahead)
        return token.text if token else ""

    def _take(self) -> str:
        self._at += 1
        return self._peek(-1)

    def _expect(self, text: str) -> None:
        if self.next != text:
            raise XPathShapeError(f"{text!r} is expected instead of {self.next or 'the end'!r}")
        self._take()
