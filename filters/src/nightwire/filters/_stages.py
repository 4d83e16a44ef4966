"""Where a filter stopped each alert: its conditions, one by one, as they stand in its source.  Pure.

A filter is made of the filter, which returns the number of the condition that made it say no.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from nightwire.filters.language import FILENAME, compile_filter

END = "the end of the function, without a return"

LONGEST = 90
"""Longest condition that is told as it stands. [character]"""

Explained = Callable[[Any], tuple[Any, str | None]]
"""Of an alert: what the filter answers, and the condition that stopped it, None where it passed."""


def explain(source: str, entry: str) -> Explained:
    """Return the function *entry* of *source* as one that also says which condition stopped the alert.

    A condition is a part of a returned ``and``, or the ``if`` above a ``return False``.  Runs the source's
    top level; the caller has made sure that it may.

    Raises:
        FilterError: It is no filter, or its top level fails.
    """
    asking, found = numbered(source, entry)
    function, number = compile_filter(source, entry), compile_filter(asking, entry)

    def explained(alert: Any) -> tuple[Any, str | None]:
        result = function(alert)
        return result, None if result else found[number(alert) - 1]

    return explained


def numbered(source: str, entry: str) -> tuple[str, list[str]]:
    """Return *source* with its function *entry* changed to say which condition stopped the alert, and those.

    It returns the condition's number, counted from 1, and 0 for an alert that passes.
    """
    tree = ast.parse(source, FILENAME)
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            node.body = [_step(step, found) for step in node.body]
            if not isinstance(node.body[-1], ast.Return):
                node.body.append(ast.Return(_number(END, found)))
    return ast.unparse(ast.fix_missing_locations(tree)), found


def _step(node: ast.stmt, found: list[str], inside: str | None = None) -> ast.stmt:
    """Return a statement, every ``return`` in it with numbers; *inside* is the condition it stands under."""
    if isinstance(node, ast.Return):
        return ast.copy_location(ast.Return(_returned(node.value, found, inside)), node)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node
    if isinstance(node, ast.If):
        node.body = [_step(step, found, _place(node.test, "if ")) for step in node.body]
        node.orelse = [_step(step, found, _place(node.test, "not ")) for step in node.orelse]
        return node
    for steps in _blocks(node):
        steps[:] = [_step(step, found, inside) for step in steps]
    return node


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield handler.body


def _returned(value: ast.expr | None, found: list[str], inside: str | None) -> ast.expr:
    if value is None:
        return _number(END, found)
    if isinstance(value, ast.Constant):
        return ast.Constant(0) if value.value else _number(inside or _place(value), found)
    return _chained(value, ast.Constant(0), found)


def _chained(value: ast.expr, passed: ast.expr, found: list[str]) -> ast.expr:
    """Return what is *passed* where *value* is true, and else the number of its part that is not."""
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
        for part in reversed(value.values):
            passed = _chained(part, passed, found)
        return passed
    return ast.IfExp(value, passed, _number(_place(value), found))


def _number(condition: str, found: list[str]) -> ast.expr:
    found.append(condition)
    return ast.Constant(len(found))


def _place(node: ast.expr, before: str = "") -> str:
    text = ast.unparse(node)
    return f"line {node.lineno}: {before}{text if len(text) <= LONGEST else f'{text[: LONGEST - 3]}…'}"
