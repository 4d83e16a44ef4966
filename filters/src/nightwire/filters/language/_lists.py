"""Compiling lists, generators and arrays over the points of a history."""

import ast

from nightwire.filters.language._expressions import truth
from nightwire.filters.language._lookup import points_of
from nightwire.filters.language._operations import ROOTS
from nightwire.filters.language._scope import HANDLERS, Scope
from nightwire.filters.language._statics import Distinct, Field, Known, Point, Points, Static, Values


def comprehension(scope: Scope, node: ast.ListComp | ast.GeneratorExp) -> Static:
    """Compile ``[p.flux for p in alert.history if p.band == "r"]``, with or without brackets."""
    extent, inner, guard = over(scope, node.generators)
    value = inner.value(node.elt)
    lazy = isinstance(node, ast.GeneratorExp)
    if isinstance(value, Point) and value.extent == extent and not lazy:
        return Points(extent, scope.build.both(guard, sound(scope, extent, scope.build.constant(True))))
    item = inner.plain(value)
    if scope.build.extents[item] != extent:
        item = scope.build.points("lift", extent, item)
    if not lazy:
        guard = scope.build.both(guard, sound(scope, extent, item))
    return Values(extent, item, guard, lazy=lazy)


def set_of(scope: Scope, node: ast.SetComp) -> Static:
    """Compile ``{p.band for p in alert.history}``."""
    made = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
    return distinct(scope, comprehension(scope, made))


def distinct(scope: Scope, value: Static) -> Distinct:
    """Return the set of a list's values."""
    if not isinstance(value, Values):
        raise scope.build.refuse("a set is made of constants, or of values of the history: {… for p in …}")
    guard = scope.build.both(value.guard, sound(scope, value.extent, value.item))
    return Distinct(value.extent, value.item, guard)


def over(scope: Scope, generators: list[ast.comprehension]) -> tuple[int, Scope, int | None]:
    """Return the points that a comprehension goes over, the scope of its element, and what faults before."""
    if len(generators) > 1 or not isinstance(generators[0].target, ast.Name):
        raise scope.build.refuse("a comprehension may go over one list, with one variable")
    one = generators[0]
    extent, variable, guard = iterated(scope, one.iter)
    inner = scope.branch()
    inner.names[one.target.id] = variable  # type: ignore[attr-defined]  # a Name, as was asked above
    for condition in one.ifs:
        extent = kept(inner, extent, truth(inner, condition), one.target.id)  # type: ignore[attr-defined]
    return extent, inner, guard


def iterated(scope: Scope, node: ast.expr) -> tuple[int, Static, int | None]:
    """Return the extent of what is gone over, what its variable is, and what faults before."""
    owner = scope.value(node)
    if isinstance(owner, Field):
        owner = points_of(scope, owner)
    if isinstance(owner, Points):
        return owner.extent, Point(owner.extent), owner.guard
    if isinstance(owner, Values):
        return owner.extent, owner.item, owner.guard
    raise scope.build.refuse(
        f"a loop goes over alert.history, a list of the survey's, or what was made of them, not over "
        f"`{ast.unparse(node)[:60]}`"
    )


def kept(inner: Scope, extent: int, condition: int, variable: str) -> int:
    """Return the points of *extent* where *condition* holds; *inner*'s variable becomes one of them."""
    build = inner.build
    if build.extents[condition] != extent:
        condition = build.points("lift", extent, condition)
    fewer = build.points("where", extent, condition)
    old = inner.names[variable]
    inner.names[variable] = (
        Point(fewer) if isinstance(old, Point) else build.points("sift", fewer, inner.plain(old))
    )
    for other, value in list(inner.names.items()):
        if other != variable and isinstance(value, int) and build.extents[value] == extent:
            inner.names[other] = build.points("sift", fewer, value)
    return fewer


def sound(scope: Scope, extent: int, item: int) -> int | None:
    """Return what faults where making a list of *item* does; None where nothing can."""
    return scope.build.points("sound", extent, item) if _can_fail(scope, extent, item) else None


def _can_fail(scope: Scope, extent: int, item: int) -> bool:
    node = scope.build.nodes[extent]
    if not scope.build.safe[item]:
        return True
    if node[0] in ROOTS:
        return False
    return (node[0] == "where" and not scope.build.safe[node[2]]) or _can_fail(scope, node[1], item)


def array(scope: Scope, value: Static, *, floats: bool = False) -> Values:
    """Return the NumPy array of a list."""
    if not isinstance(value, Values) or value.lazy:
        raise scope.build.refuse(
            "an array is made of a list over the history: np.array([… for p in alert.history])"
        )
    if value.numpy and not floats:
        return value
    item = scope.build.of("np.float64/1", value.item) if floats else value.item
    return Values(value.extent, scope.build.points("array", value.extent, item), value.guard, numpy=True)


def length(scope: Scope, value: Static) -> int:
    """Return the node of ``len(value)``."""
    build = scope.build
    if isinstance(value, Field):
        value = points_of(scope, value) if value.empty or scope_is_list(scope, value) else value
    if isinstance(value, Distinct):
        return build.then(value.guard, build.points("distinct", value.extent, value.item))
    if isinstance(value, Points) or (isinstance(value, Values) and not value.lazy):
        return build.then(value.guard, build.points("count", value.extent))
    if isinstance(value, Known):
        return build.constant(len(value.value))
    return build.of("size", scope.plain(value))


def scope_is_list(scope: Scope, field: Field) -> bool:
    """Return whether the filter goes over *field* elsewhere, so that it must be a list."""
    return ("points", field.path) in scope.build.nodes


HANDLERS[ast.ListComp] = comprehension
HANDLERS[ast.GeneratorExp] = comprehension
HANDLERS[ast.SetComp] = set_of
