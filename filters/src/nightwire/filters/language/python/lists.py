"""Compiling lists, generators, arrays, sorting and reductions over the points of a history."""

import ast
from collections.abc import Sequence

from nightwire.filters.language.operations import REDUCTIONS, ROOTS
from nightwire.filters.language.python.expressions import truth
from nightwire.filters.language.python.lookup import cut, points_of
from nightwire.filters.language.python.scope import (
    HANDLERS,
    Distinct,
    Field,
    Known,
    Point,
    PointAt,
    Points,
    Scope,
    Static,
    Values,
)


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
    """Return a comprehension's points, the scope of its element, and its guard."""
    if len(generators) > 1 or not isinstance(generators[0].target, ast.Name):
        raise scope.build.refuse("a comprehension may go over one list, with one variable")
    one = generators[0]
    extent, variable, guard = iterated(scope, one.iter)
    inner = scope.branch()
    # a Name, as was asked above
    inner.names[one.target.id] = variable  # type: ignore[attr-defined]
    for condition in one.ifs:
        extent = kept(inner, extent, truth(inner, condition), one.target.id)  # type: ignore[attr-defined]
    return extent, inner, guard


def iterated(scope: Scope, node: ast.expr) -> tuple[int, Static, int | None]:
    """Return the extent of an iteration, its variable, and its guard."""
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
    """Return the points of *extent* where *condition* holds, to which *variable* is narrowed."""
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
    """Return the guard of a list of *item*; None where nothing can fault."""
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
        listed = ("points", value.path) in build.nodes  # the filter goes over it elsewhere
        value = points_of(scope, value) if value.empty or listed else value
    if isinstance(value, Distinct):
        return build.then(value.guard, build.points("distinct", value.extent, value.item))
    if isinstance(value, Points) or (isinstance(value, Values) and not value.lazy):
        return build.then(value.guard, build.points("count", value.extent))
    if isinstance(value, Known):
        return build.constant(len(value.value))
    return build.of("size", scope.plain(value))


HANDLERS[ast.ListComp] = comprehension
HANDLERS[ast.GeneratorExp] = comprehension
HANDLERS[ast.SetComp] = set_of


def in_order(scope: Scope, node: ast.Call) -> Static:
    """Compile ``sorted(fluxes, reverse=True)``, ``sorted(alert.history, key=lambda p: p.flux)``."""
    words = {word.arg: word.value for word in node.keywords}
    if len(node.args) != 1 or set(words) - {"key", "reverse"}:
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: sorted takes one list, key= and reverse=")
    owner = _listed(scope, scope.value(node.args[0]), "sorted")
    key, before = _key(scope, owner, words.get("key"))
    extent = scope.build.points("sorted", owner.extent, key, int(_backwards(scope, words.get("reverse"))))
    made = sound(scope, owner.extent, before) if getattr(owner, "lazy", False) else None
    guard = scope.build.both(scope.build.both(owner.guard, made), sound(scope, owner.extent, key))
    found = cut(scope, owner, extent)
    guard = scope.build.both(guard, scope.build.points("chosen", extent))
    return Points(extent, guard) if isinstance(found, Points) else Values(extent, found.item, guard)


def keyed(scope: Scope, name: str, value: Static, by: ast.expr) -> Static:
    """Compile ``max(alert.history, key=lambda p: p.flux)``, and ``min``."""
    build = scope.build
    owner = _listed(scope, value, name)
    key, _ = _key(scope, owner, by)
    extent = build.points("best", owner.extent, key, int(name == "max"))
    guard = build.both(owner.guard, build.points("chosen", extent))
    if isinstance(owner, Points):
        return PointAt(extent, 0, guard)
    item = build.points("sift", extent, owner.item)
    return build.then(guard, build.points("at", extent, item, 0))


def _listed(scope: Scope, value: Static, name: str) -> Points | Values:
    if isinstance(value, Field):
        value = points_of(scope, value)
    if isinstance(value, Points | Values):
        return value
    raise scope.build.refuse(f"{name}(…) takes alert.history, a list over it, or a list of the survey's")


def _key(scope: Scope, owner: Points | Values, by: ast.expr | None) -> tuple[int, int]:
    """Return the key per point, and the value per point that the key is made of."""
    build = scope.build
    item = build.constant(True) if isinstance(owner, Points) else owner.item
    if by is None:
        if isinstance(owner, Points):
            raise build.refuse("points have no order of their own: sorted(…, key=lambda p: p.mjd_tai)")
        return build.broadcast(item, owner.extent), item
    inner = scope.branch()
    point = Point(owner.extent) if isinstance(owner, Points) else item
    if isinstance(by, ast.Lambda):
        return build.broadcast(inner.scalar(_body(inner, by, point)), owner.extent), item
    inner.names[ITSELF] = point
    called = ast.Call(by, [ast.Name(ITSELF)], [])
    for node in (called, *called.args):
        ast.copy_location(node, by)
    return build.broadcast(inner.scalar(called), owner.extent), item


ITSELF = " itself"
"""A name that no source can have."""


def _body(inner: Scope, by: ast.Lambda, point: Static) -> ast.expr:
    """Return what a lambda of one argument computes, that argument being *point*."""
    if len(by.args.args) != 1 or ast.unparse(by.args) != by.args.args[0].arg:
        raise inner.build.refuse("a key is a function of one argument")
    inner.names[by.args.args[0].arg] = point
    return by.body


def _backwards(scope: Scope, given: ast.expr | None) -> bool:
    value = scope.build.constant(False) if given is None else scope.value(given)
    node = scope.build.nodes[value] if isinstance(value, int) else ("",)
    if node[0] != "const":
        raise scope.build.refuse("sorted(…, reverse=…) takes True or False")
    return bool(node[1])


def extreme(scope: Scope, name: str, node: ast.Call) -> Static:
    """Compile ``min`` and ``max``, of values or of a list."""
    words = {word.arg: word.value for word in node.keywords}
    if len(node.args) > 1 and not words:
        return scope.build.of(
            "smallest" if name == "min" else "largest", *[scope.scalar(one) for one in node.args]
        )
    if set(words) - {"default", "key"} or len(node.args) != 1 or len(words) > 1:
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: these arguments of {name} cannot be compiled")
    value = scope.value(node.args[0])
    if "key" in words:
        return keyed(scope, name, value, words["key"])
    found = reduction(scope, name, value, [], node)
    if not words or not isinstance(value, Values):
        return found
    build, default = scope.build, scope.scalar(words["default"])
    filled = build.of(">", build.points("count", value.extent), build.constant(0))
    return build.then(build.both(value.guard, default), build.of("if", filled, found, default))


def reduction(scope: Scope, name: str, value: Static, more: list[ast.expr], node: ast.Call) -> int:
    """Return the node of one value made of a list's."""
    build = scope.build
    if not isinstance(value, Values):
        raise build.refuse(f"{name}(…) takes a list or generator over the history")
    if value.numpy and not name.startswith("np."):
        name = {"any": "np.any", "all": "np.all"}.get(name, name)
    item = value.item
    if name.startswith("np."):
        value = array(scope, value)
        item = value.item
    extra = _extra(scope, name, more, node)
    if name == "sum" and more:
        return build.then(value.guard, build.points("fold", scope.scalar(more[0]), value.extent, item))
    return build.then(value.guard, build.points(name, value.extent, item, *extra))


def _extra(scope: Scope, name: str, more: list[ast.expr], node: ast.Call) -> Sequence[int | float]:
    """Return the argument that a reduction takes beside its list: ``ddof``, or which percentile."""
    last = REDUCTIONS[name].takes[-1]
    words = [word.value for word in node.keywords if last == "k" and word.arg == "ddof"]
    given = [scope.value(one) for one in (*more, *words)] if last in "kr" else []
    others = [word.arg for word in node.keywords if word.arg not in ("ddof", "default")]
    nodes = [scope.build.nodes[one] if isinstance(one, int) else ("",) for one in given]
    numbers = [one[1] for one in nodes if one[0] == "const" and type(one[1]) in TAKEN.get(last, ())]
    if others or len(numbers) != len(given) or (more and not given and name != "sum") or len(given) > 1:
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: these arguments of {name} cannot be compiled")
    if last == "r" and not numbers:
        raise scope.build.refuse(f"{name} takes one constant number: which it is")
    return numbers or ([0] if last == "k" else [])


TAKEN = {"k": (int,), "r": (int, float)}
"""Types of a reduction's further argument, by its letter."""
