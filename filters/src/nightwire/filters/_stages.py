"""Where a filter stopped each alert: its conditions, one by one, as they stand in its source.

Pure, and for the submitter's eyes: the function is rewritten so that every condition that can make it say no
leaves a note; what it answers stays the same.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from nightwire.filters.language import FILENAME

NOTE = "_nightwire_note"
END = "the end of the function, without a return"

Explained = Callable[[Any], tuple[Any, str | None]]
"""Of an alert: what the filter answers, and the condition that stopped it, None where it passed."""


def explain(source: str, entry: str) -> Explained:
    """Return the function *entry* of *source* as one that also says which condition stopped the alert.

    A condition is a part of a returned ``and``, or the ``if`` above a ``return False``.  Runs the source's
    top level; the caller has made sure that it may.
    """
    tree = ast.parse(source, FILENAME)
    labels: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            node.body = [_noted(step, labels) for step in node.body]
    noted: list[str] = []

    def note(value: Any, label: int) -> Any:
        if not value:
            noted.append(labels[label])
        return value

    namespace: dict[str, Any] = {"__name__": "nightwire_filter", NOTE: note}
    exec(compile(ast.fix_missing_locations(tree), FILENAME, "exec"), namespace)  # noqa: S102 - the user's own
    function = namespace[entry]

    def explained(alert: Any) -> tuple[Any, str | None]:
        noted.clear()
        result = function(alert)
        return result, None if result else (noted[-1] if noted else END)

    return explained


def _noted(node: Any, labels: list[str], inside: str | None = None) -> Any:
    """Return a statement, every ``return`` in it with notes; *inside* is the condition it stands under."""
    if isinstance(node, ast.Return) and node.value is not None:
        node.value = _value(node.value, labels, inside)
    elif isinstance(node, ast.If):
        test = _text(node.test)
        node.body = [_noted(step, labels, f"line {node.lineno}: if {test}") for step in node.body]
        node.orelse = [_noted(step, labels, f"line {node.lineno}: not {test}") for step in node.orelse]
    else:
        for steps in _blocks(node):
            steps[:] = [_noted(step, labels, inside) for step in steps]
    return node


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield handler.body


def _value(value: ast.expr, labels: list[str], inside: str | None) -> ast.expr:
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
        value.values = [_value(part, labels, None) for part in value.values]
        return value
    place = f"line {value.lineno}: {_text(value)}"
    labels.append(inside if inside and isinstance(value, ast.Constant) else place)
    called = ast.Name(NOTE, ast.Load())
    return ast.copy_location(ast.Call(called, [value, ast.Constant(len(labels) - 1)], []), value)


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 90 else f"{text[:87]}…"
