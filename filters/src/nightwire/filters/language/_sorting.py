"""Compiling what puts points in an order: ``sorted``, and ``max`` and ``min`` by a key."""

import ast

from nightwire.filters.language._indices import cut
from nightwire.filters.language._lists import sound
from nightwire.filters.language._lookup import points_of
from nightwire.filters.language._scope import Scope
from nightwire.filters.language._statics import Field, Point, PointAt, Points, Static, Values


def in_order(scope: Scope, node: ast.Call) -> Static:
    """Compile ``sorted(fluxes, reverse=True)`` and ``sorted(alert.history, key=lambda p: p.flux)``."""
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
    """Return the value per point that decides, and the value per point that it is made of."""
    build = scope.build
    item = build.constant(True) if isinstance(owner, Points) else owner.item
    if by is None:
        if isinstance(owner, Points):
            raise build.refuse("points have no order of their own: sorted(…, key=lambda p: p.mjd_tai)")
        return build.lifted(item, owner.extent), item
    inner = scope.branch()
    point = Point(owner.extent) if isinstance(owner, Points) else item
    if isinstance(by, ast.Lambda):
        return build.lifted(inner.scalar(_body(inner, by, point)), owner.extent), item
    inner.names[ITSELF] = point
    called = ast.Call(by, [ast.Name(ITSELF)], [])
    for node in (called, *called.args):
        ast.copy_location(node, by)
    return build.lifted(inner.scalar(called), owner.extent), item


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
