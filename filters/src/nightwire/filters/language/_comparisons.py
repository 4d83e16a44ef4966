"""Compiling comparisons: chains of them, ``is None``, and what is in what."""

import ast
from collections.abc import Mapping

from nightwire.filters.language._expressions import combine
from nightwire.filters.language._scope import HANDLERS, Scope
from nightwire.filters.language._statics import Distinct, Field, Formatted, Known, Static, Values

COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def compare(scope: Scope, node: ast.Compare) -> Static:
    """Compile a comparison, a chain of them, ``is None`` and ``in``."""
    parts: list[Static] = []
    left = scope.value(node.left)
    for operator, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.Is | ast.IsNot):
            parts.append(_is(scope, left, operator, right))
            continue
        following = scope.value(right)
        parts.append(_compared(scope, operator, left, following))
        left = following
    if len(parts) == 1:
        return parts[0]
    last = scope.plain(parts.pop())
    while parts:
        last = scope.build.of("and", scope.plain(parts.pop()), last)
    return last


def _compared(scope: Scope, operator: ast.cmpop, left: Static, right: Static) -> Static:
    if isinstance(operator, ast.In | ast.NotIn):
        if isinstance(left, Values):
            raise scope.build.refuse("an array as a whole is in nothing")
        found = _contained(scope, _text(left), _text(right))
        return found if isinstance(operator, ast.In) else scope.build.of("not", found)
    return combine(scope, COMPARED[type(operator)], _text(left), _text(right))


def _text(value: Static) -> Static:
    """Return *value*; of an f-string its text, which may be compared."""
    return value.text if isinstance(value, Formatted) else value


def _contained(scope: Scope, left: Static, right: Static) -> int:
    build, value = scope.build, scope.plain(left)
    if not isinstance(right, Distinct | Values) or getattr(right, "numpy", False):
        return build.of("in", value, _choices(scope, right))
    if build.extents[value] >= 0:
        raise build.refuse("for each point to look through all of them cannot be compiled")
    return build.then(build.both(value, right.guard), build.points("among", value, right.extent, right.item))


def _choices(scope: Scope, right: Static) -> int:
    if isinstance(right, Known):
        value = right.value
        return scope.build.constant(value if isinstance(value, frozenset) else tuple(value))
    if not isinstance(right, int):
        raise scope.build.refuse("`in` looks in a tuple, list, set or dict of constants")
    return right


def _is(scope: Scope, left: Static, operator: ast.Is | ast.IsNot, right: ast.expr) -> int:
    if not (isinstance(right, ast.Constant) and right.value is None):
        raise scope.build.refuse(
            f"`is {ast.unparse(right)[:40]}`: only `is None` and `is not None` can be compiled"
        )
    none = _is_none(scope, left)
    return none if isinstance(operator, ast.Is) else scope.build.of("not", none)


def _is_none(scope: Scope, value: Static) -> int:
    build = scope.build
    if isinstance(value, Field) and len(value.steps) == 1:
        return build.then(scope.way(value), build.of("not", build.leaf("has", value.path)))
    if isinstance(value, Field):
        return build.of("is_none", scope.read(value))
    if isinstance(value, int):
        return build.of("is_none", value)
    guard = getattr(value, "guard", None)
    return build.then(guard, build.constant(False))


HANDLERS[ast.Compare] = compare
