"""Compiling loops over the points of a history: to count or add up, to collect, to find one."""

import ast
from collections.abc import Callable, Sequence

from nightwire.filters.language._expressions import truth
from nightwire.filters.language._lists import iterated, kept
from nightwire.filters.language._scope import Scope
from nightwire.filters.language._statics import Known, Values


def search(scope: Scope, one: ast.For, otherwise: Callable[[], int]) -> int:
    """Compile ``for p in …: if …: return constant``: whether there is such a point.

    Where there is none, the value is that of *otherwise*.
    """
    build = scope.build
    extent, inner, guard = _entered(scope, one)
    found = one.body[-1]
    simple = isinstance(found, ast.If) and not found.orelse and len(found.body) == 1 and len(one.body) == 1
    if not simple or not isinstance(found.body[0], ast.Return):  # type: ignore[attr-defined]  # an If, as asked
        raise build.refuse("a loop that returns may only be: for p in alert.history: if …: return …")
    condition = truth(inner, found.test)  # type: ignore[attr-defined]
    result = found.body[0].value  # type: ignore[attr-defined]
    value = build.constant(None) if result is None else inner.scalar(result)
    if build.extents[condition] != extent:
        condition = build.points("lift", extent, condition)
    if build.extents[value] == extent:
        fewer = build.points("where", extent, condition)
        value = build.points("at", fewer, build.points("sift", fewer, value), 0)
    there = build.points("any", extent, condition)
    return build.then(guard, build.of("if", there, value, otherwise()))


def loop(scope: Scope, one: ast.For) -> int | None:
    """Compile a loop that adds up, counts, or collects: ``total += …``, ``chosen.append(…)``."""
    extent, inner, guard = _entered(scope, one)
    return scope.build.both(guard, _gathered(scope, inner, extent, one.body, one.target.id))  # type: ignore[attr-defined]


def _entered(scope: Scope, one: ast.For) -> tuple[int, Scope, int | None]:
    if not isinstance(one.target, ast.Name) or one.orelse:
        raise scope.build.refuse("a loop has one variable and no else")
    extent, variable, guard = iterated(scope, one.iter)
    inner = scope.branch()
    inner.names[one.target.id] = variable
    return extent, inner, guard


def _gathered(
    scope: Scope, inner: Scope, extent: int, block: Sequence[ast.stmt], variable: str
) -> int | None:
    one = block[0]
    build = scope.build
    build.line = one.lineno
    if len(block) != 1:
        raise build.refuse("a loop may do one thing: add to a number, or append to a list, under conditions")
    if isinstance(one, ast.If) and not one.orelse:
        fewer = kept(inner, extent, truth(inner, one.test), variable)
        return _gathered(scope, inner, fewer, one.body, variable)
    if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and isinstance(one.target, ast.Name):
        return _added(scope, one.target.id, extent, _lifted(inner, extent, one.value))
    if (
        isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and isinstance(one.value.func, ast.Attribute)
    ):
        owner = one.value.func.value
        if one.value.func.attr == "append" and isinstance(owner, ast.Name) and len(one.value.args) == 1:
            return _appended(scope, owner.id, extent, _lifted(inner, extent, one.value.args[0]))
    raise build.refuse("a loop may add to a number (+=) or append to a list, nothing else")


def _lifted(inner: Scope, extent: int, node: ast.expr) -> int:
    item = inner.scalar(node)
    return item if inner.build.extents[item] == extent else inner.build.points("lift", extent, item)


def _added(scope: Scope, name: str, extent: int, item: int) -> int | None:
    start = scope.names.get(name)
    if not isinstance(start, int):
        raise scope.build.refuse(f"{name} is no number before the loop")
    return scope.bind(name, scope.build.points("fold", start, extent, item))


def _appended(scope: Scope, name: str, extent: int, item: int) -> int | None:
    if scope.names.get(name) != Known(()):
        raise scope.build.refuse(f"{name} is no empty list before the loop")
    return scope.bind(name, Values(extent, item, scope.build.points("sound", extent, item)))
