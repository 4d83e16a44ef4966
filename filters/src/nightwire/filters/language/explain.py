"""Where a filter stopped each alert: its conditions, as they stand in its source.  Pure.

A filter is made of the filter, which returns the number of the condition that made it say no.  For
each of its helper functions that has several conditions, where it is called, another is made in the
same way, which is asked when the helper has said no.
"""

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import count

from nightwire.filters.language.source import FILENAME
from nightwire.filters.language.sql import Token, tokens

END = "the end of the function, without a return"

MAX_TEXT = 90
"""Longest condition that is given in full. [character]"""

MAX_HELPER_DEPTH = 3
"""Depth to which calls of helper functions are followed."""

MAX_COPIES = 200
"""Most instrumented copies of helpers: helpers that call helpers could make a cube of them."""

COPY_NAME = "_stopped_in_{}_{}"
"""Name of the instrumented copy of a helper."""


def instrumented_copy(source: str, entry: str) -> tuple[str, list[str]]:
    """Return *source* with *entry* changed to return the number of a condition, and all conditions.

    It returns the condition's number, counted from 1, and 0 for an alert that passes.  A condition
    is a part of a returned ``and``, or of the ``if`` above a ``return False``; also of a helper
    function.
    """
    tree = ast.parse(source, FILENAME)
    stages = _Instrumenter(tree)
    for node in stages.functions.values():
        if node.name == entry:
            stages.change(node)
    tree.body = [step for node in tree.body for step in (node, *stages.copies.get(node, ()))]
    return ast.unparse(ast.fix_missing_locations(tree)), stages.found


class _Instrumenter:
    """Numbers the conditions of functions.

    Attributes:
        functions: Those of the source's top level, as they are.
        found: The conditions, in the order of their numbers.
        copies: For a function, those made of it that say which of its conditions said no.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.found: list[str] = []
        self.copies: dict[ast.stmt, list[ast.stmt]] = {}
        self._as_written = deepcopy(self.functions)
        self._inside: tuple[str, ...] = ()
        self._names = count(1)

    def change(self, function: ast.FunctionDef) -> None:
        """Have *function* return the number of the condition that said no, or 0."""
        function.body = [self._step(step) for step in function.body]
        if not isinstance(function.body[-1], ast.Return):
            function.body.append(ast.Return(self._number(END)))

    def _step(self, node: ast.stmt, under: str | None = None) -> ast.stmt:
        """Return a statement, every ``return`` in it with numbers; *under* is its ``if``."""
        if isinstance(node, ast.Return):
            return ast.copy_location(ast.Return(self._returned(node.value, under)), node)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return node
        if isinstance(node, ast.If):
            return self._branches(node)
        for steps in _blocks(node):
            steps[:] = [self._step(step, under) for step in steps]
        return node

    def _branches(self, node: ast.If) -> ast.If:
        if _says_no(node.body):
            node.body = [ast.copy_location(ast.Return(self._which(node.test)), node.body[0])]
        else:
            node.body = [self._step(step, _place(node.test, "if ")) for step in node.body]
        node.orelse = [self._step(step, _place(node.test, "not ")) for step in node.orelse]
        return node

    def _returned(self, value: ast.expr | None, under: str | None) -> ast.expr:
        if value is None:
            return self._number(END)
        if isinstance(value, ast.Constant):
            return ast.Constant(0) if value.value else self._number(under or _place(value))
        return self._chained(value, ast.Constant(0))

    def _chained(self, value: ast.expr, passed: ast.expr) -> ast.expr:
        """Return *passed* where *value* is true, else the number of its part that is not."""
        parts = _all_of(value)
        if len(parts) > 1:
            for part in reversed(parts):
                passed = self._chained(part, passed)
            return passed
        return ast.IfExp(value, passed, self._copy(value) or self._number(_place(value)))

    def _which(self, test: ast.expr) -> ast.expr:
        """Return the number of the part of *test* that is true, where one is."""
        parts = _any_of(test)
        *others, found = map(self._of_one, parts)
        for part, number in zip(reversed(parts[:-1]), reversed(others), strict=True):
            found = ast.IfExp(part, number, found)
        return found

    def _of_one(self, part: ast.expr) -> ast.expr:
        if len(_any_of(part)) > 1:
            return self._which(part)
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            copy = self._copy(part.operand)
            if copy is not None:
                return copy
        return self._number(_place(part, "if "))

    def _copy(self, value: ast.expr) -> ast.expr | None:
        """Return a call of a helper's instrumented copy; None where it has one condition alone."""
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
            return None
        name = value.func.id
        if name not in self._as_written or len(self._inside) >= MAX_HELPER_DEPTH:
            return None
        if (number := next(self._names)) > MAX_COPIES:
            return None
        before, known = len(self.found), {node: list(some) for node, some in self.copies.items()}
        copy = deepcopy(self._as_written[name])
        copy.name = COPY_NAME.format(name, number)
        self._inside = (ast.unparse(value), *self._inside)
        self.change(copy)
        self._inside = self._inside[1:]
        if len(self.found) - before < 2:  # the call itself says as much
            del self.found[before:]
            self.copies = known
            return None
        self.copies.setdefault(self.functions[name], []).append(copy)
        return ast.Call(ast.Name(copy.name), value.args, value.keywords)

    def _number(self, condition: str) -> ast.expr:
        self.found.append("".join([condition, *(f", in {_short(call)}" for call in self._inside)]))
        return ast.Constant(len(self.found))


def _all_of(value: ast.expr) -> Sequence[ast.expr]:
    """Return the parts that must all be true for *value* to be true, in the order of evaluation."""
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
        return value.values
    return _negated(value, ast.Or) or [value]


def _any_of(test: ast.expr) -> Sequence[ast.expr]:
    """Return the parts one of which must be true for *test* to be, in the order of evaluation."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return test.values
    return _negated(test, ast.And) or [test]


def _negated(value: ast.expr, operator: type[ast.boolop]) -> Sequence[ast.expr]:
    """Return the negated parts of ``not (… or …)``, or ``not (… and …)``; none of anything else."""
    if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)):
        return []
    inner = value.operand
    if not (isinstance(inner, ast.BoolOp) and isinstance(inner.op, operator)):
        return []
    return [ast.copy_location(ast.UnaryOp(ast.Not(), part), part) for part in inner.values]


def _says_no(block: Sequence[ast.stmt]) -> bool:
    """Return whether *block* does nothing but return a constant that is false."""
    one = block[0]
    found = one.value if isinstance(one, ast.Return) else None
    return isinstance(found, ast.Constant) and not found.value


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield handler.body


def _place(node: ast.expr, before: str = "") -> str:
    return f"line {node.lineno}: {before}{_short(node)}"


def _short(node: ast.expr | str) -> str:
    text = node if isinstance(node, str) else ast.unparse(node)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}…"


def sql_conditions(condition: str) -> list[str]:
    """Return the parts of an SQL condition that its outermost ANDs join; the whole for an OR.

    Raises:
        FilterError: Something in it is no token.
    """
    found = [token for token in tokens(condition) if (token.kind, token.text) != ("keyword", "WHERE")]
    joints = list(_joints(found))
    if any(token.text == "OR" for token in joints):
        joints = []
    starts = [found[0].at, *(token.at + len("AND") for token in joints)]
    ends = [*(token.at for token in joints), found[-1].at]
    parts = (condition[start:end] for start, end in zip(starts, ends, strict=True))
    return [" ".join(part.strip().rstrip(";").split()) for part in parts]


def _joints(found: Sequence[Token]) -> Iterator[Token]:
    """Yield the ANDs and ORs outside of brackets, CASE and BETWEEN."""
    depth = between = 0
    for token in found:
        if token.text in ("(", "CASE") and token.kind in ("sign", "keyword"):
            depth += 1
        elif token.text in (")", "END") and token.kind in ("sign", "keyword"):
            depth -= 1
        elif token.kind == "keyword" and depth == 0:
            if token.text == "BETWEEN":
                between += 1
            elif token.text == "AND" and between:
                between -= 1
            elif token.text in ("AND", "OR"):
                yield token
